"""The models that Heddle is tested and measured with."""
