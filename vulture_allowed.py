"""Names that only a library, a template, a schema or a test uses: vulture takes each line as a use."""

from typing import Any

_: Any

# called or read by a library, a schema or a test
_.map_entry
_.whitespace_split
_.protocol
_.daemon_threads
_.on_node
_.retries
_.refresh_api_key_hook
_.protocol_version
_.close_connection
_.good_template
_.ROLLOUT
_.readable
_.seekable
_.readinto
_.formatter_class
_.trust_env
_.also_seen
_.log_request

# fields of messages of Cloud Run
_.gpu_zonal_redundancy_disabled
_.startup_cpu_boost
_.scaling_mode

# tests hold Terraform equal to them
_.INDEXES
_.CONTROL_INDEXES

# options of re2
_.max_mem
_.log_errors

# the web server and the templates read them
_.strict_slashes
_.merge_slashes
_.databases
_.may_reject
_.budget_x
_.budget_gib
_.globals
_.server_software
_.http_version
_.wsgi_run_once
_.os_environ
_.log_exception
_.error_output

# failure classes: the catalogue names them
_.KV_CACHE_INSUFFICIENT
_.SHM_TOO_SMALL
_.TPU_HBM_OOM

# figures and flags of vLLM: part of the answer of `fit --json`, or told for completeness
_.helped_by
_.has_bias
_.kv_block_tokens
_.kv_blocks_per_request
_.data_bytes
_.wanted_s

# called by http.server and tokenizers
_.do_GET
_.do_POST
_.log_message
_.pre_tokenizer

__getattr__  # of the package agent.app, called by Python

# read by AI clients: fields of results, prompts by name; called by the MCP library
_.fits_now
_.usd_per_million_output_tokens
_.usd_per_million_output_tokens_with_idle
_.requests_at_once
_.meets_needs
_.price_is_old
_.usd_per_million_output_tokens_before
_.usd_per_million_output_tokens_after
_.scales_to_zero
_.next_offset
_.decided_by
_.notice
_.serving_revision
_.triage
_.will_it_fit
_.compare_platforms
_.verify_token
catalogue_from  # a resource: the MCP SDK finds it by its decorator
__signature__  # inspect reads it
quantisation  # results of MCP tools: clients read their fields
time_to_first_token_s
ttft_p50_s
ttft_p99_s
itl_p50_s
itl_p99_s

# hooks of the documentation site
_.on_files
_.on_page_markdown

# read by the template of the statistics
_.recovered
_.model_incidents
_.outages
_.has_type
memory_before  # a webhook's receiver reads them
memory_after
supersedes
approved_by  # an operator's program reads them
approvals_needed
handshake  # Flask finds it by its decorator
load_transient  # the report's contract names them
cuda_graphs
