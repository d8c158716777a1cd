"""sessions.py DOCUMENT...: runs the Python sessions (```pycon) of Markdown files.

All sessions of a document share their names, and run in the current folder.
"""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path


def main() -> int:
    failed = 0
    for name in sys.argv[1:]:
        blocks = re.findall(r"^```pycon\n(.*?)^```", Path(name).read_text(), re.M | re.S)
        # A blank line ends what is expected: so does the end of a block.
        test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, name, name, 0)
        if len(test.examples) < 3:
            print(f"{name} has only {len(test.examples)} examples")
            failed += 1
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        runner.run(test)
        failed += runner.failures
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
