#include <stela/nats/detail/settings.hpp>

namespace stela::nats {
namespace {

constexpr SettingLimits a_time{.range = some_time};

using P = PublisherOptions;
constexpr auto credentials = &P::credentials;
constexpr auto made = &P::stream_options;
constexpr auto tls = &P::tls;
constexpr Setting<P> for_publishers[] = {
    setting<&P::url>("url", "the broker's servers"),
    setting<&P::stream>("stream", "the JetStream stream"),
    setting<&P::prefix>("prefix", "the subject prefix"),
    setting<&P::subject>("subject", "what follows the prefix"),
    setting<&P::source>("source", "ce-source, if it isn't the store's id"),
    setting<&P::ensure_stream>("ensure_stream", "create the stream if it is missing"),
    setting<made, &StreamOptions::replicas>("replicas", "of a stream that is made",
                                            {.range = {1, 5}}),
    setting<made, &StreamOptions::max_bytes>("max_bytes", "of a stream that is made; 0: no limit"),
    setting<made, &StreamOptions::max_age>("max_age", "of a stream that is made; 0s: for ever"),
    setting<&P::api, &JetStreamApi::domain>("domain",
                                            "the JetStream domain, if the server is a leaf node"),
    setting<&P::api, &JetStreamApi::prefix>("api_prefix",
                                            "where another account's JetStream API is"),
    setting<&P::connect_timeout>("connect_timeout", "how long to wait for a connection", a_time),
    setting<credentials, &Credentials::user>("user", "the user name at the broker"),
    setting<credentials, &Credentials::password_file>("password_file",
                                                      "the file with the password"),
    setting<credentials, &Credentials::token_file>("token_file", "the file with a token"),
    setting<credentials, &Credentials::creds_file>("creds_file",
                                                   "the file with a JWT and its seed"),
    setting<credentials, &Credentials::nkey>("nkey", "a public key"),
    setting<credentials, &Credentials::nkey_seed_file>("nkey_seed_file", "the file with its seed"),
    setting<tls, &Tls::required>("tls", "refuse a broker without TLS"),
    setting<tls, &Tls::ca_file>("tls_ca_file", "what the broker's certificate is checked against"),
    setting<tls, &Tls::certificate_file>("tls_certificate_file", "our certificate"),
    setting<tls, &Tls::key_file>("tls_key_file", "its key"),
    setting<tls, &Tls::host_name>("tls_host_name", "the name that each broker's certificate has"),
    {{.name = "allow_binary_wire",
      .summary = "publish payloads of portable binary",
      .kind = SettingFacts::Kind::flag},
     [](const P& options) { return std::optional<SettingValue>{options.codec != Codec::json}; },
     [](P& options, const SettingValue& value) {
       options.codec = std::get<bool>(value) ? Codec::portable_binary : Codec::json;
     }},
    setting<&P::publish_timeout>("publish_timeout", "how long to wait for the broker", a_time),
};

using C = ConsumerOptions;
constexpr SettingLimits one_or_more{.range = {.least = 1}};
constexpr Setting<C> for_consumers[] = {
    setting<&C::connect_timeout>("connect_timeout", "how long to wait for a connection", a_time),
    setting<&C::batch_size>("batch_size", "messages fetched, and handled in one transaction",
                            {.range = {1, 10'000}}),
    setting<&C::prefetch_bytes>("prefetch_bytes", "bytes asked for at once, at most", one_or_more),
    setting<&C::idle_wait>("idle_wait", "how long one request waits for the first message", a_time),
    setting<&C::lease_ttl>("lease_ttl",
                           "how long a process without a sign of life keeps the stream",
                           {.range = {.least = 1'000}}),
    setting<&C::retry_backoff>("retry_backoff", "the first wait after a handler failed", a_time),
    setting<&C::retry_backoff_max>("retry_backoff_max", "the longest wait", a_time),
    setting<&C::max_attempts>("max_attempts", "tries before a message is parked", one_or_more),
    setting<&C::parked_bytes_limit>(
        "parked_bytes_limit", "the consumer stops when its parked messages have so many bytes",
        one_or_more),
    setting<&C::unknown_version_wait>(
        "unknown_version_wait",
        "how long a message waits for a process that knows the version of its event",
        {.range = {.most = some_time.most}}),
};

}  // namespace

std::span<const Setting<PublisherOptions>> publisher_settings() noexcept {
  return for_publishers;
}

std::span<const Setting<ConsumerOptions>> consumer_settings() noexcept {
  return for_consumers;
}

}  // namespace stela::nats
