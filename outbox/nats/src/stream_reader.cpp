#include <stela/nats/stream_reader.hpp>

#include "connect.hpp"
#include "database/owner.hpp"
#include "delivery.hpp"
#include "denials.hpp"
#include "incoming.hpp"
#include "leader_reads.hpp"
#include "replies.hpp"
#include "subject_layout.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace stela::nats {
namespace {

using std::chrono::nanoseconds;

/// Messages asked for at a time.
constexpr int batch = 1'000;
/// A consumer that nobody asks is forgotten.
constexpr std::chrono::seconds forgotten_after{60};

/// Of other streams, what is gone was removed by somebody.
bool drops_what_is_old(const jsStreamConfig& config) noexcept {
  const bool is_bounded = config.MaxMsgs > 0 || config.MaxBytes > 0;
  return config.MaxAge > 0 || config.MaxMsgsPerSubject > 0 ||
         (is_bounded && config.Discard == js_DiscardOld);
}

/// With no answer, or "JetStream system temporarily unavailable".
bool has_no_leader(natsStatus status, jsErrCode code) noexcept {
  return status == NATS_TIMEOUT || status == NATS_NO_RESPONDERS || code == JSClusterNotAvailErr;
}

std::string_view leader_of(const jsStreamInfo& info) noexcept {
  const bool is_known = info.Cluster != nullptr && info.Cluster->Leader != nullptr;
  return is_known ? std::string_view{info.Cluster->Leader} : std::string_view{};
}

bool is_same_leader(const jsStreamInfo& before, const jsStreamInfo& after) noexcept {
  return leader_of(before) == leader_of(after);
}

/// Messages come at the end alone: at least as many as are left now must have been found.
bool has_read_all(const jsStreamState& before, std::uint64_t found,
                  const jsStreamState& after) noexcept {
  return after.LastSeq >= before.LastSeq && found + (after.LastSeq - before.LastSeq) >= after.Msgs;
}

}  // namespace

class StreamReader::Impl {
 public:
  explicit Impl(const PublisherOptions& options) : options_{options}, layout_{options} {
    nats::check(options_);
    connection_ =
        connect({.url = options.url,
                 .credentials = options.credentials,
                 .tls = options.tls,
                 .timeout = options.connect_timeout,
                 .listen = [this](natsOptions* raw) { return Denials::listen(denials_, raw); }});
    context_ = use_jetstream(connection_.get(), api_);
  }

  bool read(PartitionId partition, Take take) {
    if (!maker_.is_this()) {
      throw UsageError{
          "a forked process used a reader that its parent had made; make it after the "
          "fork"};
    }
    stream_ = layout_.stream(partition);
    try {
      return read_stream(partition, take);
    } catch (const BrokerFailed&) {
      fail_if_denied();
      throw;
    }
  }

  bool has_found_a_stream() const noexcept { return found_; }

 private:
  void fail_if_denied() const {
    const std::string reason = denials_->reason();
    if (reason.empty()) return;
    throw Misconfigured{"reading the JetStream stream '" + stream_ +
                        "' failed: the NATS server denies what that needs: " + reason};
  }

  bool read_stream(PartitionId partition, Take take) {
    const StreamInfoHandle info = look();
    if (!info) return false;
    found_ = true;
    if (info->State.Msgs > 0) {
      if (info->Config->Replicas > 1) {
        read_from_leader(*info, partition, take);
      } else {
        read_up_to(info->State.LastSeq, partition, take);
      }
    }
    return info->State.FirstSeq > 1 && drops_what_is_old(*info->Config);
  }

  /// Null if it isn't there, and a relay would make it.
  StreamInfoHandle look() {
    return with_patience([this] { return look_once(); });
  }

  StreamInfoHandle look_once() {
    jsStreamInfo* raw = nullptr;
    jsErrCode code{};
    const natsStatus status =
        js_GetStreamInfo(&raw, context_.get(), stream_.c_str(), nullptr, &code);
    const std::string doing = "reading the JetStream stream '" + stream_ + "'";
    if (status == NATS_OK) return take_stream_info(raw, doing);
    if (status == NATS_NOT_FOUND && options_.ensure_stream) return nullptr;
    const std::string problem = doing + " failed: " + in_words(status, code);
    if (has_no_leader(status, code)) throw Leaderless{problem};
    throw BrokerFailed{problem};
  }

  /// Replicas that lag, or lead for a moment without all that was acknowledged, must not be taken
  /// for the stream.
  void read_from_leader(const jsStreamInfo& before, PartitionId partition, Take take) {
    const jsStreamState& state = before.State;
    const std::string subject = filter_of(partition);
    std::uint64_t found = 0;
    LeaderReads reads{connection_, api_, stream_, options_.publish_timeout,
                      state.Bytes / state.Msgs};
    reads.read(state.FirstSeq, state.LastSeq, [&](const StoredMessage& message) {
      ++found;
      if (!subject.empty() && message.subject != subject) return;
      take(describe(KeptHeaders{message.headers}, message.sequence));
    });
    const StreamInfoHandle after = look();
    if (!after || !is_same_leader(before, *after) || !has_read_all(state, found, after->State)) {
      throw BrokerFailed{"reading the JetStream stream '" + stream_ +
                         "' didn't reach its end: another server leads it now, or it was changed. "
                         "Run this again when the cluster is at rest"};
    }
  }

  void read_up_to(std::uint64_t last, PartitionId partition, Take take) {
    const std::string consumer = make_consumer(partition);
    if (consumer.empty()) return;
    const std::string next = api_ + "CONSUMER.MSG.NEXT." + stream_ + '.' + consumer;
    inbox_ = make_inbox();
    incoming_.emplace(connection_, inbox_);
    for (std::uint64_t pending = 1; pending > 0;) {
      ask(next);
      for (int i = 0; i < batch && pending > 0; ++i) {
        const MessageHandle message = receive();
        const BrokerPlace place = place_of(message.get());
        take(describe(MessageHeaders{message.get()}, place.sequence));
        // What is published meanwhile isn't waited for.
        pending = place.sequence >= last ? 0 : place.pending;
      }
    }
    incoming_.reset();
    // Where that is denied the broker forgets it by itself.
    denials_->spare(api_ + "CONSUMER.DELETE." + stream_ + '.' + consumer);
    jsOptions deleting;
    jsOptions_Init(&deleting);
    deleting.Wait = options_.publish_timeout.count();
    js_DeleteConsumer(context_.get(), stream_.c_str(), consumer.c_str(), &deleting, nullptr);
  }

  /// Empty for all subjects.
  std::string filter_of(PartitionId partition) const {
    return options_.fence == Fence::subject ? layout_.subject_of(partition) : std::string{};
  }

  /// Its name; empty if there is nothing for it.
  std::string make_consumer(PartitionId partition) {
    const std::string subject = filter_of(partition);
    jsConsumerConfig config;
    jsConsumerConfig_Init(&config);
    config.DeliverPolicy = js_DeliverAll;
    config.AckPolicy = js_AckNone;
    config.HeadersOnly = true;
    config.InactiveThreshold = nanoseconds{forgotten_after}.count();
    if (!subject.empty()) config.FilterSubject = subject.c_str();
    jsConsumerInfo* raw = nullptr;
    jsErrCode code{};
    const natsStatus status =
        js_AddConsumer(&raw, context_.get(), stream_.c_str(), &config, nullptr, &code);
    if (status != NATS_OK) {
      throw BrokerFailed{"reading the JetStream stream '" + stream_ +
                         "' failed: " + in_words(status, code)};
    }
    const ConsumerInfoHandle info{raw};
    if (info->NumPending == 0) return {};
    if (info->Name == nullptr) {
      throw BrokerFailed{"reading the JetStream stream '" + stream_ +
                         "' failed: the answer has no name of the reader's consumer"};
    }
    return info->Name;
  }

  void ask(const std::string& subject) {
    const std::string request = "{\"batch\":" + std::to_string(batch) + ",\"expires\":" +
                                std::to_string(nanoseconds{options_.publish_timeout}.count()) + '}';
    nats::check(natsConnection_PublishRequestString(connection_.get(), subject.c_str(),
                                                    inbox_.c_str(), request.c_str()),
                "asking for messages");
  }

  /// A message of the stream: its subject is its own, and it may have any header.
  MessageHandle receive() {
    const std::string doing = "reading the JetStream stream '" + stream_ + "'";
    for (;;) {
      MessageHandle message = incoming_->next(options_.publish_timeout, doing);
      if (!message) nats::check(NATS_TIMEOUT, doing);
      if (natsMsg_GetSubject(message.get()) != inbox_) return message;
      const MessageHeaders said{message.get()};
      if (said.get("Status") == "100") continue;
      throw BrokerFailed{doing + " failed: " + std::string{said.get("Status")} + ' ' +
                         std::string{said.get("Description")}};
    }
  }

  const database::OwningProcess maker_;
  const PublisherOptions options_;
  const SubjectLayout layout_;
  const std::string api_{api_prefix(options_.api)};
  const std::shared_ptr<Denials> denials_{std::make_shared<Denials>()};
  Connection connection_;
  ContextHandle context_;
  std::optional<Incoming> incoming_;
  std::string inbox_;
  std::string stream_;
  bool found_ = false;
};

StreamReader::StreamReader(const PublisherOptions& options)
    : impl_{std::make_unique<Impl>(options)} {}

StreamReader::~StreamReader() = default;

bool StreamReader::read(PartitionId partition, Take take) {
  return impl_->read(partition, take);
}

bool StreamReader::has_found_a_stream() const noexcept {
  return impl_->has_found_a_stream();
}

}  // namespace stela::nats
