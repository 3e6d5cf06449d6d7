"""Write the generated pages: `python -m docs.generate`; with `--check`, only report stale ones.

docs/rules.md        each rule with its source, the code that obeys it, and its tests
docs/book/           the recorded dialogues of tests/vectors, explained
docs/diagrams/       the states of the machines
docs/command.md      the reference of the command natsproto
docs/performance.md  the tables between its marks, and docs/performance.svg, from bench/results.json
"""
