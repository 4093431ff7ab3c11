"""For spark-submit: the pipelines as a program of their own."""

import sys

from kafka_sidecar.pipelines.command import main

sys.exit(main())
