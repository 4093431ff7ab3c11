import sys

from kafka_sidecar.cli import main

sys.exit(main())
