#include "session.hpp"

#include "connect.hpp"
#include "denials.hpp"
#include "replies.hpp"

#include <utility>

namespace stela::nats {
namespace {

/// Up to this many messages are flushed at once: nats.c would hold them back for a millisecond.
constexpr int few = 64;

/// How many replies are kept to be freed together.
constexpr std::size_t kept_replies = 64;

/// Marks the replies to API requests, between the inbox and the number; those to messages lack it.
constexpr char api_mark = 'a';

constexpr std::string_view may_not_publish = "Permissions Violation for Publish to";

}  // namespace

Session::Session(const PublisherOptions& options, const SubjectLayout& layout, std::uint64_t number,
                 AnswerSink& sink)
    : options_{options},
      layout_{layout},
      number_{number},
      sink_{&sink},
      envelope_{
          {options.source, options.tenant, content_type_of(options.codec), options.partitioner}} {}

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
    if (options_.fence != Fence::none || !options_.ensure_stream) {
      return answer({.kind = Answer::Kind::connected});
    }
    advance(connection_.get(), [](ReadBacks& all, auto now) { return all.open(now); });
  } catch (const Misconfigured& e) {
    answer({.kind = Answer::Kind::misconfigured, .detail = e.what()});
  } catch (const UsageError& e) {
    answer({.kind = Answer::Kind::misconfigured, .detail = e.what()});
  } catch (const std::exception& e) {
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
  listen();
}

void Session::listen() {
  inbox_ = make_inbox() + '.';
  auto hold = std::make_unique<Hold>(shared_from_this());
  replies_ = connection_.subscribe(inbox_ + '*', on_reply, hold.get());
  natsSubscription_SetPendingLimits(replies_.get(), -1, -1);
  check(natsSubscription_SetOnCompleteCB(replies_.get(), on_listening_over, hold.get()),
        "listening for the end");
  hold.release();
}

void Session::end() noexcept {
  silence();
  replies_.reset();
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
  Session& session = **static_cast<Hold*>(closure);
  session.on_denied(connection, why_denied(status));
}

void Session::on_denied(natsConnection* connection, const std::string& why) {
  // Nothing works without answers.
  if (why.find(may_not_publish) == std::string::npos) {
    return answer({.kind = Answer::Kind::misconfigured, .detail = why});
  }
  const std::string_view subject = denied_subject(why);
  if (subject.starts_with(api_)) {
    return advance(connection,
                   [&](ReadBacks& all, auto now) { return all.on_denied(subject, why, now); });
  }
  // Each message is denied separately, but the first denial speaks for all.
  for (const std::uint64_t request : unanswered_.take(subject)) {
    answer({.request = request,
            .kind = Answer::Kind::misconfigured,
            .detail = why,
            .failure = FailureClass::permission});
  }
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
  unanswered_.add(message.request, subject, std::chrono::steady_clock::now());
  const natsStatus status = natsConnection_PublishMsg(connection_.get(), raw);
  if (status == NATS_OK) {
    ++unflushed_;
    return;
  }
  unanswered_.remove(message.request);
  Answer failed{.request = message.request,
                .kind = Answer::Kind::disconnected,
                .detail = "publishing to " + subject + ": " + natsStatus_GetText(status)};
  if (status == NATS_MAX_PAYLOAD) {
    failed.kind = Answer::Kind::refused;
    failed.failure = FailureClass::too_large;
    failed.size_limit = {natsConnection_GetMaxPayload(connection_.get()),
                         "max_payload of the server"};
  }
  answer(std::move(failed));
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
  // Larger numbers leave with the next millisecond's buffer, which is faster than flushing each.
  // The flush's answer doesn't matter: the messages have left.
  if (unflushed_ <= few) natsConnection_FlushTimeout(connection_.get(), 1);
  unflushed_ = 0;
  sent_.clear();
}

void Session::on_reply(natsConnection* connection, natsSubscription*, natsMsg* raw, void* closure) {
  Session& session = **static_cast<Hold*>(closure);
  const std::string_view name =
      std::string_view{natsMsg_GetSubject(raw)}.substr(session.inbox_.size());
  if (name.starts_with(api_mark)) {
    const MessageHandle reply{raw};
    return session.on_api_reply(connection, number_in(name.substr(1)), raw);
  }
  if (session.old_replies_.size() == kept_replies) session.old_replies_.clear();
  session.old_replies_.emplace_back(raw);
  Answer answer = read_reply(raw);
  answer.request = number_in(name);
  if (answer.request == 0) return;
  // A stream that is read back reports its name and limits itself.
  if (answer.failure == FailureClass::stream_full && session.options_.fence == Fence::none) {
    answer.detail += "; its stream is '" + session.layout_.stream({}) + "'";
  }
  session.unanswered_.remove(answer.request);
  session.answer(std::move(answer));
}

void Session::probe(std::uint64_t request) {
  const auto limit = options_.publish_timeout.count();
  const natsStatus status =
      connection_ ? natsConnection_FlushTimeout(connection_.get(), limit) : NATS_CONNECTION_CLOSED;
  if (status == NATS_OK) return answer({.request = request, .kind = Answer::Kind::alive});
  answer({.request = request,
          .kind = Answer::Kind::disconnected,
          .detail = std::string{"the server doesn't answer: "} + natsStatus_GetText(status)});
}

// --- reading back

void Session::read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) {
  advance(connection_.get(),
          [&](ReadBacks& all, auto now) { return all.begin(request, partition, from, now); });
}

void Session::on_api_reply(natsConnection* connection, std::uint64_t number, natsMsg* reply) {
  advance(connection, [&](ReadBacks& all, auto now) {
    if (natsMsg_IsNoResponders(reply)) return all.on_no_responders(number, now);
    const std::string_view text{natsMsg_GetData(reply),
                                static_cast<std::size_t>(natsMsg_GetDataLength(reply))};
    return all.on_reply(number, text, now);
  });
}

template <class Step>
void Session::advance(natsConnection* connection, Step step) {
  Steps steps;
  {
    const std::lock_guard lock{read_backs_mutex_};
    steps = step(read_backs_, std::chrono::steady_clock::now());
  }
  for (const ApiRequest& request : steps.requests) {
    const std::string reply_to = inbox_ + api_mark + std::to_string(request.number);
    // A failure to send ends the connection, which reports it.
    natsConnection_PublishRequest(connection, request.subject.c_str(), reply_to.c_str(),
                                  request.body.data(), static_cast<int>(request.body.size()));
  }
  for (Answer& answer : steps.answers) this->answer(std::move(answer));
}

}  // namespace stela::nats
