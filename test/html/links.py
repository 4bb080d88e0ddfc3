# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Each link within a site leads to a file of it, and where it names a place, to one that the page
# has; nothing is fetched from elsewhere, but links to other sites may be followed by who reads.
# Prints what does not; exit status 1 where there is any.
#
# Usage: links.py FOLDER
import html.parser
import os
import sys
import urllib.parse

FETCHED = {("img", "src"), ("script", "src"), ("link", "href"), ("iframe", "src")}


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.names, self.twice, self.fetched = [], set(), [], []
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                if value in self.names:
                    self.twice.append(value)
                self.names.add(value)
            if name in ("href", "src"):
                self.links.append(value)
                if (tag, name) in FETCHED and urllib.parse.urlsplit(value).scheme:
                    self.fetched.append(value)


folder = sys.argv[1]
pages = {}
for where, _, names in os.walk(folder):
    for name in names:
        if name.endswith(".html"):
            path = os.path.join(where, name)
            pages[os.path.normpath(path)] = Page(path)
bad = count = 0
for path, page in sorted(pages.items()):
    for link in page.fetched:
        print("%s fetches %s" % (path, link))
        bad += 1
    for link in page.links:
        parts = urllib.parse.urlsplit(link)
        if parts.scheme:
            continue
        count += 1
        there = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(parts.path))
                                 if parts.path else path)
        if not os.path.isfile(there):
            print("%s links to %s, which is not there" % (path, link))
            bad += 1
        elif parts.fragment and there in pages and \
                urllib.parse.unquote(parts.fragment) not in pages[there].names:
            print("%s links to %s, and there is no such place there" % (path, link))
            bad += 1
print("%d pages, %d links within, %d wrong" % (len(pages), count, bad))
sys.exit(1 if bad or not pages else 0)
