#include <stela/nats/detail/stream_reader.hpp>

#include "connect.hpp"
#include "database/owner.hpp"
#include "delivery.hpp"
#include "denials.hpp"
#include "leader_reads.hpp"
#include "replies.hpp"
#include "stream_source.hpp"
#include "subject_layout.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stela::nats {
namespace {

/// Messages requested at a time.
constexpr int batch = 1'000;
/// Requested messages with up to this many others in between are read together.
constexpr std::uint64_t near = 16;

/// Only such streams drop messages themselves; elsewhere missing messages were removed by somebody.
bool drops_what_is_old(const jsStreamConfig& config) noexcept {
  const bool is_bounded = config.MaxMsgs > 0 || config.MaxBytes > 0;
  return config.MaxAge > 0 || config.MaxMsgsPerSubject > 0 ||
         (is_bounded && config.Discard == js_DiscardOld);
}

/// There was no answer, or "JetStream system temporarily unavailable".
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

/// Messages are added only at the end, so at least as many as remain must have been found.
bool has_read_all(const jsStreamState& before, std::uint64_t found,
                  const jsStreamState& after) noexcept {
  return after.LastSeq >= before.LastSeq && found + (after.LastSeq - before.LastSeq) >= after.Msgs;
}

}  // namespace

class StreamReader::Impl {
 public:
  explicit Impl(const PublisherOptions& options) : options_{options}, layout_{options} {
    nats::check(options_);
    connection_ = Denials::connect(denials_, options);
    context_ = use_jetstream(connection_.get(), api_);
  }

  bool read(PartitionId partition, Take take) {
    return in_stream(partition, [&] { return read_stream(partition, take); });
  }

  void fetch(PartitionId partition, std::span<const std::uint64_t> places, TakeEvent take) {
    in_stream(partition, [&] { return fetch_places(places, take); });
  }

  bool has_found_a_stream() const noexcept { return found_; }

 private:
  bool in_stream(PartitionId partition, FunctionRef<bool()> work) {
    if (!maker_.is_this()) {
      throw UsageError{
          "a forked process used a reader that its parent had made; make it after the "
          "fork"};
    }
    stream_ = layout_.stream(partition);
    try {
      return work();
    } catch (const BrokerFailed&) {
      denials_->fail_if_any("reading the JetStream stream '" + stream_ + "' failed");
      throw;
    }
  }

  bool fetch_places(std::span<const std::uint64_t> places, TakeEvent take) {
    const StreamInfoHandle info = places.empty() ? nullptr : look();
    if (!info) return false;
    const jsStreamState& state = info->State;
    LeaderReads reads{connection_, api_, stream_, options_.publish_timeout,
                      state.Bytes / std::max<std::uint64_t>(state.Msgs, 1)};
    while (!places.empty()) {
      std::size_t count = 1;
      while (count < places.size() && places[count] - places[count - 1] <= near) ++count;
      const auto run = places.first(count);
      reads.read(run.front(), run.back(), [&](const StoredMessage& message) {
        if (std::binary_search(run.begin(), run.end(), message.sequence)) hand_over(message, take);
      });
      places = places.subspan(count);
    }
    return true;
  }

  void hand_over(const StoredMessage& message, TakeEvent take) {
    const std::chrono::nanoseconds time{message.time};
    BrokerEvent found{
        .broker_stream = stream_,
        .broker_sequence = message.sequence,
        .stored_at = Timestamp{std::chrono::duration_cast<std::chrono::microseconds>(time)}};
    std::optional<ReceivedEvent> event;
    std::string problem;
    try {
      event = read_envelope(KeptHeaders{message.headers}, message.payload);
    } catch (const CorruptEvent& e) {
      problem = e.what();
      found.problem = problem;
      return take(found);
    }
    const StoredEvent stored = event->as_stored();
    found.store_id = event->store_id;
    found.redelivery = event->redelivery;
    found.codec = event->codec;
    found.event = &stored;
    take(found);
  }

  bool read_stream(PartitionId partition, Take take) {
    const StreamInfoHandle info = look();
    if (!info) return false;
    found_ = true;
    if (info->State.Msgs > 0) {
      if (info->Config->Replicas > 1) {
        read_from_leader(*info, partition, take);
      } else {
        read_from(info->State.FirstSeq, partition, take);
      }
    }
    return info->State.FirstSeq > 1 && drops_what_is_old(*info->Config);
  }

  /// Null if the stream is missing and a relay would create it.
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

  /// A replica that lags, or leads briefly without all acknowledged messages, must not be taken for
  /// the stream.
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

  void read_from(std::uint64_t first, PartitionId partition, Take take) {
    const ConsumerOptions reading{.url = options_.url,
                                  .api = options_.api,
                                  .credentials = options_.credentials,
                                  .tls = options_.tls,
                                  .connect_timeout = options_.connect_timeout,
                                  .name = "reader",
                                  .stream = stream_,
                                  .filter_subject = filter_of(partition)};
    StreamSource source{reading, StreamSource::Contents::headers};
    try {
      source.stand_at(first - 1);
      // Don't wait for messages that are published meanwhile.
      const std::uint64_t last = source.last_of(stream_);
      const auto has_more = [&] {
        const auto next = source.next_after(stream_, reading.filter_subject, source.position());
        return next && *next <= last;
      };
      while (source.position() < last && (reading.filter_subject.empty() || has_more())) {
        const auto deliveries = source.fetch(batch, options_.publish_timeout);
        for (const Delivery& delivery : deliveries) {
          take(describe(MessageHeaders{delivery.message.get()}, delivery.place.sequence));
        }
        if (!deliveries.empty()) continue;
        // The last message may have been removed.
        if (!has_more()) break;
        nats::check(NATS_TIMEOUT, "reading the JetStream stream '" + stream_ + "'");
      }
    } catch (const SourceForgotten&) {
      throw BrokerFailed{"reading the JetStream stream '" + stream_ +
                         "' didn't reach its end: the broker was started again, or the stream was "
                         "made again. Run this again"};
    } catch (const BrokerFailed&) {
      source.fail_if_denied();
      throw;
    }
  }

  /// Empty for all subjects.
  std::string filter_of(PartitionId partition) const {
    return options_.fence == Fence::subject ? layout_.subject_of(partition) : std::string{};
  }

  const database::OwningProcess maker_;
  const PublisherOptions options_;
  const SubjectLayout layout_;
  const std::string api_{api_prefix(options_.api)};
  const std::shared_ptr<Denials> denials_{std::make_shared<Denials>()};
  Connection connection_;
  ContextHandle context_;
  std::string stream_;
  bool found_ = false;
};

StreamReader::StreamReader(const PublisherOptions& options)
    : impl_{std::make_unique<Impl>(options)} {}

StreamReader::~StreamReader() = default;

bool StreamReader::read(PartitionId partition, Take take) {
  return impl_->read(partition, take);
}

void StreamReader::fetch(PartitionId partition, std::span<const std::uint64_t> places,
                         TakeEvent take) {
  impl_->fetch(partition, places, take);
}

bool StreamReader::has_found_a_stream() const noexcept {
  return impl_->has_found_a_stream();
}

}  // namespace stela::nats
