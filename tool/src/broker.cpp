#include "broker.hpp"

namespace stela::tool {

nats::PublisherOptions broker_options(const Settings& settings, Fence fence,
                                      const Partitioner& partitioner) {
  nats::PublisherOptions options;
  options.url = settings.text("nats.url");
  options.prefix = settings.text("nats.prefix");
  options.stream = settings.text("nats.stream");
  options.subject = settings.text("nats.subject");
  options.source = settings.text("nats.source");
  options.fence = fence;
  options.partitioner = &partitioner;
  options.ensure_stream = settings.boolean("nats.ensure_stream");
  options.stream_options = {.replicas = static_cast<int>(settings.integer("nats.replicas")),
                            .max_bytes = settings.integer("nats.max_bytes"),
                            .max_age = std::chrono::duration_cast<std::chrono::seconds>(
                                settings.duration("nats.max_age"))};
  options.api = {.domain = settings.text("nats.domain"),
                 .prefix = settings.text("nats.api_prefix")};
  options.credentials = {.user = settings.text("nats.user"),
                         .password_file = settings.text("nats.password_file"),
                         .token_file = settings.text("nats.token_file"),
                         .creds_file = settings.text("nats.creds_file"),
                         .nkey = settings.text("nats.nkey"),
                         .nkey_seed_file = settings.text("nats.nkey_seed_file")};
  options.tls = {.required = settings.boolean("nats.tls"),
                 .ca_file = settings.text("nats.tls_ca_file"),
                 .certificate_file = settings.text("nats.tls_certificate_file"),
                 .key_file = settings.text("nats.tls_key_file"),
                 .host_name = settings.text("nats.tls_host_name")};
  options.connect_timeout = settings.duration("nats.connect_timeout");
  options.publish_timeout = settings.duration("outbox.publish_timeout");
  if (settings.boolean("nats.allow_binary_wire")) options.codec = Codec::portable_binary;
  return options;
}

RelayOptions relay_options(const Settings& settings) {
  const auto count = [&](std::string_view key) { return static_cast<int>(settings.integer(key)); };
  RelayOptions options;
  options.worker = settings.text("worker.id");
  options.lease_ttl = settings.duration("outbox.lease_ttl");
  options.lease_renew = settings.duration("outbox.lease_renew");
  options.heartbeat_ttl = settings.duration("outbox.heartbeat_ttl");
  options.batch_size = count("outbox.batch_size");
  options.window = count("outbox.window");
  options.max_in_flight_bytes = settings.integer("outbox.max_in_flight_bytes");
  options.idle_backoff = std::chrono::milliseconds{settings.integer("outbox.idle_backoff_ms")};
  options.claim_ttl = settings.duration("outbox.claim_ttl");
  options.publish_timeout = settings.duration("outbox.publish_timeout");
  options.retry_backoff = settings.duration("outbox.retry_backoff");
  options.retry_backoff_max = settings.duration("outbox.retry_backoff_max");
  options.retry_jitter = settings.number("outbox.retry_jitter");
  options.max_attempts = count("outbox.max_attempts");
  for (const OnPoison choice : {OnPoison::park, OnPoison::halt, OnPoison::skip}) {
    if (to_string(choice) == settings.text("outbox.on_poison")) options.on_poison = choice;
  }
  options.retention =
      std::chrono::duration_cast<std::chrono::hours>(settings.duration("outbox.retention"));
  return options;
}

}  // namespace stela::tool
