locals {
  # Equal to the constants of agent/adapters/store/firestore*.py.
  expiring = {}
  indexes  = {}
}
