"""A load sweep as plots, a report and a comparison."""
