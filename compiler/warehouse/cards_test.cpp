// cards_test: what the loader of cards says.
