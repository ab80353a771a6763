// key_test: keys are read and matched.
