"""The explorer: a page that runs this very core in the browser, on MicroPython.

    labs/     the Python of the page, one module for each of its panes; runs on MicroPython
    page/     HTML, CSS and JavaScript, without a framework
    site.py   puts the page, the sources and MicroPython into one folder of static files

`natsproto explore` serves that folder, and `make site` writes it.
"""
