// plan_test: plans are read, written and replayed.
