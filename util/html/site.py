# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Makes a site of the manual pages and of what is written in Markdown, which link to each other, by
# mandoc and pandoc. Pages keep their places in the tree; a file that a page links to is copied
# beside it. test/html/links.py looks at the links.
#
# Usage: site.py SOURCES FOLDER VERSION
import html
import os
import re
import shutil
import subprocess
import sys

FOLDERS = ("fabtests-config", "prov", "test", "util")  # where there is Markdown below the top

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 sans-serif; max-width: 60em; margin: 0 auto; padding: 0 1em 3em; }
nav { padding: 0.7em 0; border-bottom: 1px solid #8888; margin-bottom: 1em; }
nav a { margin-right: 1.2em; }
pre, code, .Li { font-family: monospace; font-size: 0.92em; }
pre { overflow-x: auto; padding: 0.5em 0.8em; background: #8881; }
table { border-collapse: collapse; display: block; overflow-x: auto; margin: 1em 0; }
th, td { border-top: 1px solid #8884; padding: 0.2em 0.8em 0.2em 0; text-align: left; vertical-align: top; }
table.head, table.foot { display: table; width: 100%; color: #888; }
table.head td, table.foot td { border: 0; }
td.head-vol, td.foot-date { text-align: center; }
td.head-rtitle, td.foot-os { text-align: right; }
img, svg { max-width: 100%; height: auto; background: #fff; }
a.permalink { color: inherit; text-decoration: none; }
section h1 { font-size: 1.3em; margin-top: 1.4em; }
section h2 { font-size: 1.1em; }
.Bl-tag > dd { margin-left: 2em; }
a { text-decoration-thickness: 1px; }
"""

NAVIGATION = (
    ("index.html", "dat"),
    ("man/index.html", "manual pages"),
    ("prov/dat/core/STATES.html", "states"),
    ("prov/dat/README.html#decisions-and-why", "decisions"),
    ("test/bench/README.html", "benchmarks"),
    ("CONTRIBUTING.html", "contributing"),
)


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit("%s: %s" % (" ".join(words), done.stderr.strip() or done.returncode))
    return done.stdout


def page(folder, place, title, body):
    """Writes one page; links in the navigation are relative to its place."""
    up = os.path.dirname(place)
    links = "".join('<a href="%s">%s</a>' % (os.path.relpath(target, up or "."), words)
                    for target, words in NAVIGATION)
    path = os.path.join(folder, place)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write('<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
                   '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
                   "<title>%s</title>\n<style>%s</style>\n</head>\n<body>\n<nav>%s</nav>\n%s\n"
                   "</body>\n</html>\n" % (html.escape(title), STYLE, links, body))


def place_of(path):
    """Where the page of a file of the tree is; itself where there is none."""
    if path == "README.md":
        return "index.html"
    if path.endswith(".md"):
        return path[:-3] + ".html"
    if re.match(r"man/[^/]+\.[1-8]$", path):
        return path + ".html"
    return path


class Site:
    def __init__(self, sources, folder, version):
        self.sources = sources
        self.folder = folder
        self.version = version
        self.manuals = sorted(name for name in os.listdir(os.path.join(sources, "man"))
                              if re.search(r"\.[1-8]$", name))
        self.texts = ["README.md", "CONTRIBUTING.md"]
        for top in FOLDERS:
            for where, _, names in os.walk(os.path.join(sources, top)):
                self.texts += [os.path.relpath(os.path.join(where, name), sources)
                               for name in sorted(names) if name.endswith(".md")]

    def link(self, target, source):
        """What a link in the page of `source` becomes."""
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            return target
        path, hash_sign, anchor = target.partition("#")
        whole = os.path.normpath(os.path.join(os.path.dirname(source), path))
        there = os.path.join(self.sources, whole)
        if os.path.isdir(there):
            whole = os.path.join(whole, "README.md")
        place = place_of(whole)
        if place == whole and os.path.isfile(there):
            copy = os.path.join(self.folder, whole)
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copyfile(there, copy)
        return os.path.relpath(place, os.path.dirname(place_of(source)) or ".") + hash_sign + anchor

    def linked(self, body, source):
        return re.sub(r'\b(href|src)="([^"]*)"',
                      lambda found: '%s="%s"' % (found[1], self.link(found[2], source)), body)

    def write_text(self, source):
        body = run("pandoc", "--from", "gfm", "--to", "html5", "--wrap", "none",
                   os.path.join(self.sources, source))
        title = re.search(r"<h1[^>]*>(.*?)</h1>", body, re.S)
        words = re.sub(r"<[^>]*>", "", title[1]) if title else source
        page(self.folder, place_of(source), html.unescape(words), self.linked(body, source))

    def write_manual(self, name):
        body = run("mandoc", "-T", "html", "-O", "fragment",
                   os.path.join(self.sources, "man", name))

        def see(found):
            other = "%s.%s" % (html.unescape(found[1]), found[2])
            return '<a href="%s.html">%s</a>' % (other, found[0]) if other in self.manuals else found[0]

        body = re.sub(r"<b>([A-Za-z0-9_-]+)</b>\(([1-8])\)", see, body)
        page(self.folder, "man/%s.html" % name, name, body)
        text = re.search(r'<section[^>]*>\s*<h1[^>]*><a[^>]*>NAME</a></h1>(.*?)</section>', body, re.S)
        return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", text[1] if text else "")).strip()

    def write(self):
        for source in self.texts:
            self.write_text(source)
        lines = {name: self.write_manual(name) for name in self.manuals}
        items = "".join('<tr><td><a href="%s.html">%s(%s)</a></td><td>%s</td></tr>\n'
                        % (name, name[:-2], name[-1], lines[name].partition("- ")[2] or
                           lines[name].partition("\u2014 ")[2] or lines[name])
                        for name in sorted(self.manuals, key=lambda name: (name[-1], name)))
        page(self.folder, "man/index.html", "manual pages",
             "<h1>Manual pages of dat %s</h1>\n<table>\n%s</table>" % (self.version, items))
        print("%d manual pages, %d other pages in %s" % (len(self.manuals), len(self.texts), self.folder))


if __name__ == "__main__":
    for program in ("mandoc", "pandoc"):
        if not shutil.which(program):
            sys.exit("%s is not installed (Debian: %s)" % (program, program))
    shutil.rmtree(sys.argv[2], ignore_errors=True)
    Site(sys.argv[1], sys.argv[2], sys.argv[3]).write()
