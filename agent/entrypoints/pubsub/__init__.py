"""The Pub/Sub door: a pushed request is a delivery, a handler does its work, and the outcome answers the request."""
