"""Programs computed in several ways, held against each other: `python -m tests.assault.differential N` judges one.

The reference is an interpreter of the stored graph in numpy. Against it stand torch in its default forms and in every
other that routes offer, the model written as PyTorch source, training, each example by itself, gradients, and bundles.
"""
