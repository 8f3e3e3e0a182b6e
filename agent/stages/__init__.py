"""One file per edge of the pipeline; a listing of this folder spells the product."""
