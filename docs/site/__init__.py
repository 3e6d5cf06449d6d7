"""The documentation as a site: `make docs` writes it to build/docs.

The Markdown pages are written for Git hosts, where they must be readable as they are. `stage`
copies them with the few changes that the generator of the site needs, and checks their links;
`reference` adds pages from docstrings. The navigation is that of docs/index.md.
"""
