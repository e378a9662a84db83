#include "session.hpp"

#include "connect.hpp"
#include "replies.hpp"
#include "streams.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string_view>

namespace stela::nats {
namespace {

/// A read-back stops here, and goes on with the next one.
constexpr std::uint64_t most_found = 2'000;
/// So few messages aren't worth waiting for more of them: nats.c would hold them for a millisecond.
constexpr int few = 64;

/// So many replies are kept until they are freed together.
constexpr std::size_t kept_replies = 64;

std::string in_words(natsStatus status, jsErrCode code) {
  std::string text = natsStatus_GetText(status);
  if (code != 0) text += " (JetStream error " + std::to_string(static_cast<int>(code)) + ')';
  return text;
}

}  // namespace

Session::Session(const PublisherOptions& options, const Layout& layout, std::uint64_t number,
                 AnswerSink& sink)
    : options_{options},
      layout_{layout},
      number_{number},
      sink_{&sink},
      envelope_{{options.source, content_type_of(options.codec), options.partitioner}} {}

Session::~Session() {
  end();
}

void Session::answer(Answer answer) {
  answer.session = number_;
  const std::lock_guard lock{sink_mutex_};
  if (sink_ != nullptr) sink_->take(std::move(answer));
}

void Session::silence() noexcept {
  const std::lock_guard lock{sink_mutex_};
  sink_ = nullptr;
}

bool Session::is_silent() const {
  const std::lock_guard lock{sink_mutex_};
  return sink_ == nullptr;
}

// --- the connection

void Session::open() {
  try {
    connect();
    if (options_.fence == Fence::none) ensure_stream({});
    answer({.kind = Answer::Kind::connected});
  } catch (const Refused& e) {
    answer({.kind = Answer::Kind::misconfigured, .detail = e.what()});
  } catch (const UsageError& e) {
    answer({.kind = Answer::Kind::misconfigured, .detail = e.what()});
  } catch (const Error& e) {
    answer({.kind = Answer::Kind::disconnected, .detail = e.what()});
  }
}

void Session::connect() {
  const auto set_callbacks = [this](natsOptions* raw) {
    check(natsOptions_SetWriteDeadline(raw, options_.publish_timeout.count()),
          "setting the time-out");
    Closure hold{new Hold{shared_from_this()}, [](void* old) { delete static_cast<Hold*>(old); }};
    check(natsOptions_SetErrorHandler(raw, on_error, hold.get()), "listening for errors");
    check(natsOptions_SetClosedCB(raw, on_closed, hold.get()), "listening for the end");
    return hold;
  };
  connection_ = nats::connect({.url = options_.url,
                               .credentials = options_.credentials,
                               .tls = options_.tls,
                               .timeout = options_.connect_timeout,
                               .listen = set_callbacks,
                               .is_unwanted = [this] { return is_silent(); }});
  natsConnection* const connection = connection_.get();
  jsOptions waits;
  jsOptions_Init(&waits);
  waits.Wait = options_.publish_timeout.count();
  jsCtx* context = nullptr;
  check(natsConnection_JetStream(&context, connection, &waits), "using JetStream");
  context_.reset(context);
  listen();
}

void Session::listen() {
  natsInbox* inbox = nullptr;
  check(natsInbox_Create(&inbox), "making an inbox");
  inbox_ = std::string{inbox} + '.';
  natsInbox_Destroy(inbox);
  auto hold = std::make_unique<Hold>(shared_from_this());
  natsSubscription* subscription = nullptr;
  check(natsConnection_Subscribe(&subscription, connection_.get(), (inbox_ + '*').c_str(), on_reply,
                                 hold.get()),
        "subscribing to the answers");
  replies_.reset(subscription);
  natsSubscription_SetPendingLimits(subscription, -1, -1);
  check(natsSubscription_SetOnCompleteCB(subscription, on_listening_over, hold.get()),
        "listening for the end");
  hold.release();
}

void Session::end() noexcept {
  silence();
  replies_.reset();
  context_.reset();
  if (connection_) natsConnection_Close(connection_.get());
  connection_.reset();
}

void Session::on_listening_over(void* closure) {
  delete static_cast<Hold*>(closure);
}

void Session::on_closed(natsConnection*, void* closure) {
  const std::unique_ptr<Hold> hold{static_cast<Hold*>(closure)};
  (*hold)->answer({.kind = Answer::Kind::disconnected, .detail = "the connection is closed"});
}

void Session::on_error(natsConnection* connection, natsSubscription*, natsStatus status,
                       void* closure) {
  if (status != NATS_NOT_PERMITTED) return;
  const char* text = nullptr;
  natsConnection_GetLastError(connection, &text);
  (*static_cast<Hold*>(closure))
      ->answer({.kind = Answer::Kind::misconfigured,
                .detail = text != nullptr && *text != '\0' ? text : natsStatus_GetText(status)});
}

// --- publishing

void Session::publish(const OutgoingMessage& message) {
  reply_to_.assign(inbox_);
  reply_to_ += std::to_string(message.request);
  const std::string subject = layout_.subject(message.partition, message.event);
  const std::string_view payload = message.event.payload;
  natsMsg* raw = nullptr;
  check(natsMsg_Create(&raw, subject.c_str(), reply_to_.c_str(), payload.data(),
                       static_cast<int>(payload.size())),
        "making a message");
  sent_.emplace_back(raw);
  try {
    envelope_.write(raw, message);
  } catch (const CorruptEvent& e) {
    return answer({.request = message.request, .kind = Answer::Kind::refused, .detail = e.what()});
  }
  set_fence(raw, message);
  const natsStatus status = natsConnection_PublishMsg(connection_.get(), raw);
  if (status == NATS_OK) {
    ++unflushed_;
    return;
  }
  answer({.request = message.request,
          .kind = status == NATS_MAX_PAYLOAD ? Answer::Kind::refused : Answer::Kind::unknown,
          .detail = "publishing to " + subject + ": " + natsStatus_GetText(status)});
}

void Session::set_fence(natsMsg* raw, const OutgoingMessage& message) {
  const auto set = [&](const char* name, const std::string& value) {
    check(natsMsgHeader_Set(raw, name, value.c_str()), "setting a header");
  };
  if (message.partition != partition_) {
    partition_ = message.partition;
    stream_ = layout_.stream(partition_);
  }
  set("Nats-Expected-Stream", stream_);
  if (!message.predecessor) return;
  set(options_.fence == Fence::subject ? "Nats-Expected-Last-Subject-Sequence"
                                       : "Nats-Expected-Last-Sequence",
      std::to_string(message.predecessor->broker_sequence));
  if (options_.fence == Fence::stream && !message.predecessor->message_id.empty()) {
    set("Nats-Expected-Last-Msg-Id", std::string{message.predecessor->message_id});
  }
}

void Session::flush() {
  if (unflushed_ == 0) return sent_.clear();
  // Many leave with the next millisecond's buffer, which is faster than one by one. Whether the
  // server answers the flush within its millisecond doesn't matter: they have left.
  if (unflushed_ <= few) natsConnection_FlushTimeout(connection_.get(), 1);
  unflushed_ = 0;
  sent_.clear();
}

void Session::on_reply(natsConnection*, natsSubscription*, natsMsg* raw, void* closure) {
  Session& session = **static_cast<Hold*>(closure);
  if (session.old_replies_.size() == kept_replies) session.old_replies_.clear();
  session.old_replies_.emplace_back(raw);
  const std::string_view subject{natsMsg_GetSubject(raw)};
  const std::string_view digits = subject.substr(subject.rfind('.') + 1);
  Answer answer = read_reply(raw);
  std::from_chars(digits.data(), digits.data() + digits.size(), answer.request);
  if (answer.request != 0) session.answer(std::move(answer));
}

// --- reading back

void Session::read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) {
  Answer answer{.request = request, .kind = Answer::Kind::read_back};
  try {
    ensure_stream(partition);
    if (options_.fence == Fence::subject) {
      read_last(partition, answer);
    } else {
      read_range(partition, from, answer);
    }
  } catch (const UsageError& e) {
    answer.kind = Answer::Kind::misconfigured;
    answer.detail = e.what();
  } catch (const Error& e) {
    answer.kind = Answer::Kind::unknown;
    answer.detail = e.what();
  }
  this->answer(std::move(answer));
}

void Session::ensure_stream(PartitionId partition) {
  if (!connection_) throw BrokerFailed{"the connection is closed"};
  const std::string name = layout_.stream(partition);
  if (!options_.ensure_stream || made_.contains(name)) return;
  jsStreamInfo* raw = nullptr;
  const natsStatus status = js_GetStreamInfo(&raw, context_.get(), name.c_str(), nullptr, nullptr);
  if (status == NATS_OK) jsStreamInfo_Destroy(raw);
  if (status == NATS_NOT_FOUND) {
    make_stream(context_.get(), name, layout_.subjects(partition), options_.stream_options);
  }
  made_.insert(name);
}

/// Null if there is no stream to read; the answer says why then. What endangers the fence is
/// looked for each time: somebody may have changed the stream.
StreamInfoHandle Session::look(PartitionId partition, Answer& answer) {
  const std::string stream = layout_.stream(partition);
  jsErrCode code{};
  jsStreamInfo* raw = nullptr;
  const natsStatus status = js_GetStreamInfo(&raw, context_.get(), stream.c_str(), nullptr, &code);
  StreamInfoHandle info{status == NATS_OK ? raw : nullptr};
  if (status == NATS_NOT_FOUND ||
      kind_of({.code = static_cast<int>(code)}) == Answer::Kind::misconfigured) {
    answer.kind = Answer::Kind::misconfigured;
    answer.detail = "there is no JetStream stream '" + stream +
                    "'; make it, or let ensure_stream do so: " + in_words(status, code);
    made_.erase(stream);
    return nullptr;
  }
  if (status != NATS_OK) {
    throw BrokerFailed{"reading the stream '" + stream + "': " + in_words(status, code)};
  }
  const std::string danger = danger_in(*info->Config, layout_.subjects(partition), options_.fence);
  if (danger.empty()) return info;
  answer.kind = Answer::Kind::misconfigured;
  answer.detail = danger;
  return nullptr;
}

void Session::read_range(PartitionId partition, std::uint64_t from, Answer& answer) {
  const StreamInfoHandle info = look(partition, answer);
  if (!info) return;
  const std::string stream = layout_.stream(partition);
  answer.first_sequence = info->State.FirstSeq;
  answer.last_sequence = info->State.LastSeq;
  const auto limit = std::chrono::steady_clock::now() + options_.publish_timeout / 2;
  for (std::uint64_t at = std::max(from, answer.first_sequence); at <= info->State.LastSeq; ++at) {
    natsMsg* raw = nullptr;
    jsErrCode code{};
    const natsStatus status = js_GetMsg(&raw, context_.get(), stream.c_str(), at, nullptr, &code);
    // Only what the server says that it doesn't have is missing.
    if (status == NATS_NOT_FOUND) continue;
    if (status != NATS_OK) {
      throw BrokerFailed{"reading message " + std::to_string(at) + " of the stream '" + stream +
                         "': " + in_words(status, code)};
    }
    const MessageHandle message{raw};
    answer.found.push_back(describe(raw, at));
    if (answer.found.size() == most_found || std::chrono::steady_clock::now() > limit) {
      // As if the stream ended here: who marks this much asks again.
      answer.last_sequence = at;
      return;
    }
  }
}

void Session::read_last(PartitionId partition, Answer& answer) {
  const StreamInfoHandle info = look(partition, answer);
  if (!info) return;
  const std::string stream = layout_.stream(partition);
  const std::string subject = layout_.subject_of(partition);
  answer.first_sequence = info->State.FirstSeq;
  natsMsg* raw = nullptr;
  jsErrCode code{};
  const natsStatus status =
      js_GetLastMsg(&raw, context_.get(), stream.c_str(), subject.c_str(), nullptr, &code);
  if (status == NATS_NOT_FOUND) return;
  if (status != NATS_OK) {
    throw BrokerFailed{"reading the last message of '" + subject + "' in the stream '" + stream +
                       "': " + in_words(status, code)};
  }
  const MessageHandle message{raw};
  answer.last_sequence = natsMsg_GetSequence(raw);
  answer.found.push_back(describe(raw, answer.last_sequence));
}

}  // namespace stela::nats
