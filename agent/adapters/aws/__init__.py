"""What every adapter of AWS uses: clients by region, and their errors made ours."""
