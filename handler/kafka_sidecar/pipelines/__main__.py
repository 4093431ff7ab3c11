"""For spark-submit: the pipelines as a program of their own."""

import sys

from handler.pipelines.command import main

sys.exit(main())
