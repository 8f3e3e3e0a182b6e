"""Google's APIs that several adapters use: tokens, signing keys, Cloud KMS, buckets, quotas."""
