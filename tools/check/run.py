"""Runs the quick checks of the sources: `./dev check`.

A check is a module beside this one with `check(root, files)`, which returns its complaints, each
with the place first. Exit status 1 when there is any; --junit FILE keeps the outcome.
"""

import argparse
import sys
from xml.etree import ElementTree

import classes
import docs
import functions
import dialect_spec
import layers
import layout
import names
import options as options_check
import packages
import places
import sizes
import words
from sources import ROOT, sources

CHECKS = (layers, packages, places, sizes, functions, classes, names, words, docs,
          dialect_spec, options_check, layout)


def main():
    """Runs all checks, or those named."""
    parser = argparse.ArgumentParser(description="the quick checks of the sources")
    parser.add_argument("names", nargs="*", metavar="CHECK",
                        help=f"only these of: {', '.join(c.__name__ for c in CHECKS)}")
    parser.add_argument("--junit", help="write the outcome to this file")
    options = parser.parse_args()
    unknown = set(options.names) - {module.__name__ for module in CHECKS}
    if unknown:
        parser.error(f"no check '{', '.join(sorted(unknown))}'")
    files, failed = sources(ROOT), 0
    suite = ElementTree.Element("testsuite", name="check")
    for module in CHECKS:
        if options.names and module.__name__ not in options.names:
            continue
        problems = module.check(ROOT, files)
        failed += bool(problems)
        case = ElementTree.SubElement(suite, "testcase", name=module.__name__, classname="check")
        if problems:
            ElementTree.SubElement(case, "failure").text = "\n".join(problems)
        print("\n".join(problems + [f"{module.__name__}: {len(problems) or 'no'} complaints"]))
    if options.junit:
        ElementTree.ElementTree(suite).write(options.junit)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
