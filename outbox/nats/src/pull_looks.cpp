// How the stream and the consumer stand at the broker.
#include "pull.hpp"

#include "connect.hpp"
#include "replies.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>

namespace stela::nats {
namespace {

using std::chrono::milliseconds;

constexpr int stream_not_found = 10059;

/// How often the consumer at the broker is looked at, and how often at most.
constexpr std::chrono::seconds look_interval{30};
constexpr std::chrono::seconds shortest_look_interval{2};

jsOptions within(milliseconds timeout) {
  jsOptions asking;
  jsOptions_Init(&asking);
  asking.Wait = timeout.count();
  return asking;
}

}  // namespace

StreamInfoHandle Pull::find_stream(jsOptions* asking) {
  jsStreamInfo* raw = nullptr;
  jsErrCode code{};
  const natsStatus status =
      js_GetStreamInfo(&raw, context_.get(), options_.stream.c_str(), asking, &code);
  if (status != NATS_OK) fail_to_find_stream(status, code);
  StreamInfoHandle info =
      take_stream_info(raw, "reading the JetStream stream '" + options_.stream + "'");
  if (info->Config->Retention == js_LimitsPolicy) return info;
  throw UsageError{"the JetStream stream '" + options_.stream + "' has " +
                   (info->Config->Retention == js_InterestPolicy ? "interest" : "workqueue") +
                   " retention: a message that has to wait for another would be removed while it "
                   "waits; make a stream with limits retention that sources this one, and consume "
                   "that"};
}

void Pull::fail_to_find_stream(natsStatus status, jsErrCode code) const {
  const std::string problem =
      "reading the JetStream stream '" + options_.stream + "' failed: " + in_words(status, code);
  const bool is_missing = status == NATS_NO_RESPONDERS ||
                          kind_of({.code = static_cast<int>(code)}) == Answer::Kind::misconfigured;
  if (is_missing) throw Misconfigured{problem};
  if (status == NATS_TIMEOUT) throw BrokerSilent{problem};
  throw BrokerFailed{problem};
}

void Pull::fail_if_denied() const {
  const std::string reason = denials_->reason();
  if (reason.empty()) return;
  throw Misconfigured{"the NATS server denies what the consumer '" + options_.name +
                      "' of the stream '" + options_.stream + "' needs: " + reason};
}

void Pull::check_durable_of(const jsStreamInfo& stream) {
  std::optional<Durable> durable = find_durable(connection_.get(), options_, patience());
  if (!durable) {
    make_durable(context_.get(), options_, recall_settled(stream));
    durable = find_durable(connection_.get(), options_, patience());
  }
  if (!durable) throw BrokerFailed{"the consumer '" + options_.name + "' was deleted"};
  accept(*durable, stream);
  has_whole_history_ = durable->deliver_policy == "all" && stream.State.FirstSeq <= 1;
}

void Pull::accept(const Durable& durable, const jsStreamInfo& stream) {
  check_durable(durable, options_, {options_.batch_size, request_bytes_, options_.idle_wait},
                {stream.Config->Replicas, recall_settled(stream)});
  fail_if_paused(durable);
  ack_wait_ = std::chrono::ceil<milliseconds>(durable.ack_wait);
  if (seen_settled_.stream_made_at != stream.Created) seen_settled_ = {stream.Created, 0};
  seen_settled_.through = std::max(seen_settled_.through, durable.settled_through());
  if (wants_place()) settled_ = Settled{stream.Created, durable.settled_through()};
  looked_ = std::chrono::steady_clock::now();
}

/// An operator may have a reason, so it isn't refused for good; but nothing comes.
void Pull::fail_if_paused(const Durable& durable) const {
  if (!durable.is_paused) return;
  const std::string consumer = options_.stream + ' ' + options_.name;
  throw Misconfigured{"the consumer '" + options_.name + "' of the stream '" + options_.stream +
                      "' is paused until " + durable.pause_until + ", and gets nothing before; '" +
                      "nats consumer resume " + consumer + "' ends that"};
}

bool Pull::wants_place() const noexcept {
  return !options_.filter_subject.empty() || options_.start == ConsumerStart::now;
}

/// 0 if nobody knows, or it was of another stream.
std::uint64_t Pull::recall_settled(const jsStreamInfo& stream) const {
  if (!wants_place()) return 0;
  const std::optional<Settled> settled = recall_();
  const bool is_of_this = settled && settled->stream_made_at == stream.Created &&
                          settled->through <= stream.State.LastSeq;
  return is_of_this ? settled->through : 0;
}

void Pull::look_again() {
  const StreamInfoHandle stream = find_stream();
  const std::optional<Durable> durable = find_durable(connection_.get(), options_, patience());
  if (!durable) {
    throw BrokerFailed{"the stream '" + options_.stream + "' has no consumer '" + options_.name +
                       "' any more"};
  }
  accept(*durable, *stream);
}

bool Pull::is_look_due() const {
  return std::chrono::steady_clock::now() >=
         looked_ + (is_unheard_ ? shortest_look_interval : look_interval);
}

/// While no request is open: on a slow line the answer would come behind all its messages.
void Pull::look_again_if_due() {
  if (!is_look_due()) return;
  const Steady begun = std::chrono::steady_clock::now();
  try {
    look_again();
  } catch (const BrokerSilent&) {
    // Messages come: the line is slow, or others have it, too.
    if (came_ + longest_on_line < begun && !is_anything_here()) throw;
    looked_ = std::chrono::steady_clock::now();
  }
}

milliseconds Pull::patience() const noexcept {
  return options_.connect_timeout + (owed_ > 0 ? longest_on_line : milliseconds{0});
}

std::uint64_t Pull::settled_through() {
  const std::optional<Durable> durable = find_durable(connection_.get(), options_, patience());
  if (!durable) throw BrokerFailed{"the consumer '" + options_.name + "' was deleted"};
  seen_settled_.through = std::max(seen_settled_.through, durable->settled_through());
  return seen_settled_.through;
}

/// Of another stream: the account may be let to ask for its own alone. BrokerFailed once it is
/// known that this is denied.
void Pull::spare(const std::string& subject, const std::string& stream) {
  denials_->spare(api_ + subject);
  if (!denials_->has_denied(api_ + subject)) return;
  throw BrokerFailed{"reading the JetStream stream '" + stream +
                     "' failed: the NATS server denies " + api_ + subject};
}

std::optional<Progress> Pull::progress_in(const std::string& stream) {
  const std::string looking = "STREAM.INFO." + stream;
  spare(looking, stream);
  spare("CONSUMER.INFO." + stream + '.' + options_.name, stream);
  jsStreamInfo* raw = nullptr;
  jsErrCode code{};
  jsOptions asking = within(options_.connect_timeout);
  const natsStatus status = js_GetStreamInfo(&raw, context_.get(), stream.c_str(), &asking, &code);
  const StreamInfoHandle info{raw};
  if (static_cast<int>(code) == stream_not_found) return {};
  if (status != NATS_OK) {
    spare(looking, stream);
    throw BrokerFailed{"reading the JetStream stream '" + stream +
                       "' failed: " + in_words(status, code)};
  }
  Progress progress{.stream_made_at = info->Created, .end = info->State.LastSeq};
  progress.settled_through = progress.end;
  if (info->State.Msgs == 0) return progress;
  ConsumerOptions there = options_;
  there.stream = stream;
  const std::optional<Durable> durable = find_durable(connection_.get(), there, patience());
  const bool is_done = durable && durable->undelivered == 0 && durable->ack_pending == 0;
  // A consumer that is started there makes a deleted one again.
  if (!is_done) progress.settled_through = durable ? durable->settled_through() : 0;
  return progress;
}

}  // namespace stela::nats
