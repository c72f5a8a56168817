"""`python -m dvfl`."""

import sys

from dvfl.cli import main

sys.exit(main())
