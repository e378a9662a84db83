#include "durable.hpp"

#include "connect.hpp"
#include "replies.hpp"
#include "subject_layout.hpp"

#include <stela/framework/codec/json_reader.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>

namespace stela::nats {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr int consumer_not_found = 10014;
constexpr milliseconds standard_ack_wait{30'000};
constexpr milliseconds least_durable_ack_wait{1'000};
constexpr int standard_max_ack_pending = 1'000;

// --- the broker's answer

class ConfigReader {
 public:
  explicit ConfigReader(json::Reader& json) : json_{json} {}

  void read(const char* name, std::string& text) {
    if (json_.select(name)) text = json_.get_string();
  }
  void read(const char* name, std::int64_t& number) {
    if (json_.select(name)) number = json_.get_int64();
  }
  void read(const char* name, nanoseconds& time) {
    if (json_.select(name)) time = nanoseconds{json_.get_int64()};
  }
  void read(const char* name, bool& flag) {
    if (json_.select(name)) flag = json_.get_bool();
  }
  void read(const char* name, std::vector<std::string>& texts) {
    if (!json_.select(name) || json_.is_null()) return;
    json_.open_array();
    while (json_.next_element()) texts.emplace_back(json_.get_string());
    json_.close();
  }
  bool has_elements(const char* name) {
    if (!json_.select(name) || json_.is_null()) return false;
    const std::size_t count = json_.open_array();
    json_.close();
    return count > 0;
  }

 private:
  json::Reader& json_;
};

/// The place in the stream of one of the answer's pairs of sequences.
std::int64_t read_place(json::Reader& json, const char* name) {
  if (!json.select(name)) return 0;
  std::int64_t place = 0;
  json.open_object();
  if (json.select("stream_seq")) place = json.get_int64();
  json.close();
  return place;
}

Durable read_durable_config(json::Reader& json) {
  Durable durable;
  json.open_object();
  ConfigReader config{json};
  config.read("ack_policy", durable.ack_policy);
  config.read("deliver_policy", durable.deliver_policy);
  config.read("replay_policy", durable.replay_policy);
  config.read("deliver_subject", durable.deliver_subject);
  config.read("priority_policy", durable.priority_policy);
  config.read("filter_subjects", durable.filter_subjects);
  std::string filter;
  config.read("filter_subject", filter);
  if (!filter.empty()) durable.filter_subjects.push_back(filter);
  config.read("ack_wait", durable.ack_wait);
  config.read("max_expires", durable.max_expires);
  config.read("inactive_threshold", durable.inactive_threshold);
  config.read("max_deliver", durable.max_deliver);
  config.read("max_ack_pending", durable.max_ack_pending);
  config.read("max_batch", durable.max_batch);
  config.read("max_bytes", durable.max_bytes);
  config.read("num_replicas", durable.replicas);
  if (json.select("opt_start_seq")) durable.start_sequence = json.get_uint64();
  durable.has_backoff = config.has_elements("backoff");
  config.read("headers_only", durable.headers_only);
  config.read("mem_storage", durable.is_in_memory);
  config.read("pause_until", durable.pause_until);
  json.close();
  return durable;
}

/// Its number; what it says is added to `text`.
std::int64_t read_error(json::Reader& json, std::string& text) {
  std::int64_t code = 0;
  json.open_object();
  if (json.select("description")) text += kept_words(json.get_string());
  if (json.select("err_code")) code = json.get_int64();
  json.close();
  return code;
}

// --- what it has to be

/// One setting that is wrong, and how to set it right: an option of 'nats consumer edit', or empty
/// if that can't be edited.
struct Fault {
  std::string text;
  std::string edit;
};

class Faults {
 public:
  void require(bool holds, const std::string& text, const std::string& edit = {}) {
    if (!holds) all_.push_back({text, edit});
  }

  bool is_empty() const noexcept { return all_.empty(); }

  std::string texts() const {
    std::string joined;
    for (const Fault& fault : all_) joined.append(joined.empty() ? "" : "; ").append(fault.text);
    return joined;
  }

  std::string remedy(const std::string& consumer) const {
    std::string command = "nats consumer edit " + consumer;
    for (const Fault& fault : all_) {
      if (fault.edit.empty()) {
        return "Some of that can't be edited: delete the consumer with 'nats consumer rm " +
               consumer + "', and it is made as it should be, or take another name.";
      }
      command.append(" ").append(fault.edit);
    }
    return "Change it with '" + command + "'.";
  }

 private:
  std::vector<Fault> all_;
};

std::string in_ms(nanoseconds time) {
  return std::to_string(std::chrono::floor<milliseconds>(time).count()) + " ms";
}

std::string is_and_should(const std::string& name, const std::string& is,
                          const std::string& should) {
  return name + " is " + is + " and should be " + should;
}

/// Whether it gets, or got, all that the options want.
bool begins_well(const Durable& durable, ConsumerStart start, std::uint64_t settled_through) {
  const std::string& begin = durable.deliver_policy;
  if (start == ConsumerStart::now) return begin != "last_per_subject";
  return begin == "all" ||
         (begin == "by_start_sequence" && durable.start_sequence <= settled_through + 1);
}

void check_policies(const Durable& durable, const ConsumerOptions& options,
                    std::uint64_t settled_through, Faults& faults) {
  const auto quoted = [](const std::string& text) { return "'" + text + "'"; };
  faults.require(durable.deliver_subject.empty(),
                 is_and_should("deliver_subject", quoted(durable.deliver_subject),
                               "empty, for a pull consumer"));
  faults.require(durable.ack_policy == "explicit",
                 is_and_should("ack_policy", durable.ack_policy, "explicit"));
  faults.require(durable.replay_policy == "instant",
                 is_and_should("replay_policy", durable.replay_policy, "instant"));
  faults.require(durable.priority_policy.empty() || durable.priority_policy == "none",
                 is_and_should("priority_policy", durable.priority_policy, "none"));
  faults.require(
      begins_well(durable, options.start, settled_through),
      is_and_should("deliver_policy", durable.deliver_policy,
                    options.start == ConsumerStart::first
                        ? "all, or the option `start` ConsumerStart::now: this one never got "
                          "earlier messages"
                        : "new"));
}

void check_filter(const Durable& durable, const ConsumerOptions& options, Faults& faults) {
  const std::vector<std::string> wanted = options.filter_subject.empty()
                                              ? std::vector<std::string>{}
                                              : std::vector<std::string>{options.filter_subject};
  std::string is;
  for (const std::string& one : durable.filter_subjects) is.append(is.empty() ? "" : ", ") += one;
  faults.require(
      durable.filter_subjects == wanted,
      is_and_should("filter_subject", "'" + is + "'", "'" + options.filter_subject + "'") +
          ", as the option filter_subject");
}

void check_losses(const Durable& durable, std::int64_t stream_replicas, Faults& faults) {
  faults.require(durable.max_deliver <= 0,
                 is_and_should("max_deliver", std::to_string(durable.max_deliver),
                               "-1: what comes more often would be lost"),
                 "--max-deliver=-1");
  faults.require(!durable.headers_only,
                 is_and_should("headers_only", "true", "false: handlers need the payload"),
                 "--no-headers-only");
  faults.require(!durable.has_backoff,
                 "backoff is set and should be empty: it takes the place of ack_wait");
  faults.require(durable.inactive_threshold.count() <= 0,
                 is_and_should("inactive_threshold", in_ms(durable.inactive_threshold),
                               "0: the broker would forget the consumer"));
  faults.require(!durable.is_in_memory,
                 is_and_should("mem_storage", "true",
                               "false: a server that is started again has forgotten it"));
  const bool is_as_safe = durable.replicas == 0 || durable.replicas >= stream_replicas;
  faults.require(is_as_safe,
                 is_and_should("num_replicas", std::to_string(durable.replicas),
                               std::to_string(stream_replicas) + ", as the stream's"),
                 "--replicas=" + std::to_string(stream_replicas));
}

void check_requests(const Durable& durable, const PullLimits& limits, Faults& faults) {
  const std::string batch = std::to_string(limits.batch);
  faults.require(durable.max_batch <= 0 || durable.max_batch >= limits.batch,
                 is_and_should("max_batch", std::to_string(durable.max_batch),
                               "at least the option batch_size, " + batch),
                 "--max-pull-batch=" + batch);
  const std::string bytes = std::to_string(limits.bytes);
  faults.require(durable.max_bytes <= 0 || durable.max_bytes >= limits.bytes,
                 is_and_should("max_bytes", std::to_string(durable.max_bytes),
                               "at least " + bytes +
                                   ": the option prefetch_bytes, or a message of the server's "
                                   "max_payload"),
                 "--max-pull-bytes=" + bytes);
  faults.require(durable.max_expires.count() <= 0 || durable.max_expires >= limits.expires,
                 is_and_should("max_expires", in_ms(durable.max_expires),
                               "at least the option idle_wait, " + in_ms(limits.expires)),
                 "--max-pull-expire=" + std::to_string(limits.expires.count()) + "ms");
  faults.require(durable.max_ack_pending <= 0 || durable.max_ack_pending >= limits.batch,
                 is_and_should("max_ack_pending", std::to_string(durable.max_ack_pending),
                               "at least the option batch_size, " + batch),
                 "--max-pending=" + batch);
}

/// What was set must hold; what wasn't follows the broker.
void check_wishes(const Durable& durable, const ConsumerOptions& options, Faults& faults) {
  if (options.ack_wait) {
    faults.require(durable.ack_wait == *options.ack_wait,
                   is_and_should("ack_wait", in_ms(durable.ack_wait),
                                 in_ms(*options.ack_wait) + ", or the option ack_wait unset"),
                   "--wait=" + std::to_string(options.ack_wait->count()) + "ms");
  }
  if (options.max_ack_pending) {
    const std::string wanted = std::to_string(*options.max_ack_pending);
    faults.require(durable.max_ack_pending == *options.max_ack_pending,
                   is_and_should("max_ack_pending", std::to_string(durable.max_ack_pending),
                                 wanted + ", or the option max_ack_pending unset"),
                   "--max-pending=" + wanted);
  }
  if (options.gap_patience) {
    faults.require(
        *options.gap_patience > durable.ack_wait,
        is_and_should("ack_wait", in_ms(durable.ack_wait),
                      "less than the option gap_patience, " + in_ms(*options.gap_patience) +
                          ": what the broker sends again would count as missing; leave "
                          "gap_patience unset"),
        "--wait=" + std::to_string(options.gap_patience->count() / 2) + "ms");
  }
  faults.require(durable.ack_wait < options.retention,
                 is_and_should("ack_wait", in_ms(durable.ack_wait),
                               "less than the option retention: what the broker sends again would "
                               "be handled again"),
                 "--wait=30s");
}

/// For a new consumer: less than a patience that was asked for.
milliseconds new_ack_wait(const ConsumerOptions& options) {
  if (options.ack_wait) return *options.ack_wait;
  if (!options.gap_patience) return standard_ack_wait;
  return std::clamp(*options.gap_patience / 2, least_durable_ack_wait, standard_ack_wait);
}

}  // namespace

std::optional<Durable> read_durable(std::string_view answer, const std::string& doing) {
  try {
    json::Reader json{answer};
    json.open_object();
    if (json.select("error")) {
      std::string text = doing + " failed: ";
      if (read_error(json, text) == consumer_not_found) return {};
      throw BrokerFailed{text};
    }
    if (!json.select("config")) throw BrokerFailed{doing + " failed: no configuration in it"};
    Durable durable = read_durable_config(json);
    durable.delivered = read_place(json, "delivered");
    durable.ack_floor = read_place(json, "ack_floor");
    if (json.select("num_ack_pending")) durable.ack_pending = json.get_int64();
    if (json.select("paused")) durable.is_paused = json.get_bool();
    if (json.select("num_pending")) durable.undelivered = json.get_int64();
    return durable;
  } catch (const codec::DecodeError& e) {
    throw BrokerFailed{doing + " failed: " + e.what()};
  }
}

std::optional<Durable> find_durable(natsConnection* connection, const ConsumerOptions& options,
                                    milliseconds patience) {
  const std::string subject =
      api_prefix(options.api) + "CONSUMER.INFO." + options.stream + '.' + options.name;
  const std::string doing =
      "looking for the consumer '" + options.name + "' of the stream '" + options.stream + "'";
  natsMsg* raw = nullptr;
  check(natsConnection_RequestString(&raw, connection, subject.c_str(), "", patience.count()),
        doing);
  const MessageHandle answer{raw};
  return read_durable({natsMsg_GetData(raw), static_cast<std::size_t>(natsMsg_GetDataLength(raw))},
                      doing);
}

void make_durable(jsCtx* context, const ConsumerOptions& options, std::uint64_t settled_through) {
  jsConsumerConfig config;
  jsConsumerConfig_Init(&config);
  config.Durable = options.name.c_str();
  config.DeliverPolicy = options.start == ConsumerStart::now ? js_DeliverNew : js_DeliverAll;
  if (settled_through > 0) {
    config.DeliverPolicy = js_DeliverByStartSequence;
    config.OptStartSeq = settled_through + 1;
  }
  config.AckPolicy = js_AckExplicit;
  config.AckWait = nanoseconds{new_ack_wait(options)}.count();
  // The inbox counts what is a message's own fault; a delivery more or less isn't.
  config.MaxDeliver = -1;
  config.MaxAckPending =
      options.max_ack_pending.value_or(std::max(standard_max_ack_pending, options.batch_size));
  if (!options.filter_subject.empty()) config.FilterSubject = options.filter_subject.c_str();
  jsErrCode code{};
  const natsStatus made =
      js_AddConsumer(nullptr, context, options.stream.c_str(), &config, nullptr, &code);
  const std::string doing = "making the consumer '" + options.name + "' of the stream '" +
                            options.stream + "' (JetStream error " +
                            std::to_string(static_cast<int>(code)) + ')';
  constexpr int invalid_request = 10025;
  constexpr int filter_is_no_subset = 10093;
  if (made != NATS_OK && !options.filter_subject.empty() &&
      (code == filter_is_no_subset || code == invalid_request)) {
    throw Misconfigured{doing + " failed: no subject of the stream matches the filter_subject '" +
                        options.filter_subject + "'; correct it"};
  }
  check(made, doing);
}

void check_durable(const Durable& durable, const ConsumerOptions& options, const PullLimits& limits,
                   const StreamFacts& stream) {
  Faults faults;
  check_policies(durable, options, stream.settled_through, faults);
  check_filter(durable, options, faults);
  check_losses(durable, stream.replicas, faults);
  check_requests(durable, limits, faults);
  check_wishes(durable, options, faults);
  if (faults.is_empty()) return;
  throw UsageError{"the stream '" + options.stream + "' has a consumer '" + options.name +
                   "' that isn't as it should be: " + faults.texts() + ". " +
                   faults.remedy(options.stream + ' ' + options.name)};
}

}  // namespace stela::nats
