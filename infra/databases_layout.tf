locals {
  # Equal to the constants of agent/adapters/store/firestore*.py; a test holds both sides.
  expiring = {
    signals  = { database = "state", collection = "signals", field = "kept_until" }
    failures = { database = "state", collection = "failures", field = "kept_until" }
    used     = { database = "control", collection = "used", field = "kept_until" }
  }
  indexes = {
    signals_incident_asc_at_asc = {
      database   = "state"
      collection = "signals"
      fields = [
        { path = "incident", order = "ASCENDING" },
        { path = "at", order = "ASCENDING" },
      ]
    }
    signals_incident_asc_at_des = {
      database   = "state"
      collection = "signals"
      fields = [
        { path = "incident", order = "ASCENDING" },
        { path = "at", order = "DESCENDING" },
      ]
    }
    outbox_incident_asc_order_asc = {
      database   = "state"
      collection = "outbox"
      fields = [
        { path = "incident", order = "ASCENDING" },
        { path = "order", order = "ASCENDING" },
      ]
    }
    incidents_run_asc_opened_at_des = {
      database   = "state"
      collection = "incidents"
      fields = [
        { path = "run", order = "ASCENDING" },
        { path = "opened_at", order = "DESCENDING" },
      ]
    }
    incidents_service_asc_opened_at_des = {
      database   = "state"
      collection = "incidents"
      fields = [
        { path = "service", order = "ASCENDING" },
        { path = "opened_at", order = "DESCENDING" },
      ]
    }
    incidents_is_open_asc_opened_at_des = {
      database   = "state"
      collection = "incidents"
      fields = [
        { path = "is_open", order = "ASCENDING" },
        { path = "opened_at", order = "DESCENDING" },
      ]
    }
    incidents_waits_in_asc_opened_at_des = {
      database   = "state"
      collection = "incidents"
      fields = [
        { path = "waits_in", order = "ASCENDING" },
        { path = "opened_at", order = "DESCENDING" },
      ]
    }
    receipts_service_asc_at_asc = {
      database   = "control"
      collection = "receipts"
      fields = [
        { path = "service", order = "ASCENDING" },
        { path = "at", order = "ASCENDING" },
      ]
    }
  }
}
