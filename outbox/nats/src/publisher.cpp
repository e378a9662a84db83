#include <stela/nats/publisher.hpp>

#include "handles.hpp"
#include "layout.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>

namespace stela::nats {
namespace {

constexpr std::uint64_t most_found = 10'000;

Answer::Kind kind_of(natsStatus status, int code) noexcept {
  if (status == NATS_NO_RESPONDERS) return Answer::Kind::misconfigured;
  switch (code) {
    case 10071:  // wrong last sequence
    case 10070:  // wrong last message id
    case 10164:
    case 10158:
      return Answer::Kind::stored_before;
    case 10054:
    case 10097:
      return Answer::Kind::refused;
    case 10077:
    case 10023:
    case 10002:
    case 10008:
    case 10047:
      return Answer::Kind::full;
    case 10060:
    case 10059:
    case 10039:
      return Answer::Kind::misconfigured;
    default:
      break;
  }
  if (status == NATS_TIMEOUT || status == NATS_CONNECTION_CLOSED ||
      status == NATS_CONNECTION_DISCONNECTED) {
    return Answer::Kind::unknown;
  }
  return Answer::Kind::rejected;
}

std::string header(natsMsg* message, const char* name) {
  const char* value = nullptr;
  if (natsMsgHeader_Get(message, name, &value) != NATS_OK || value == nullptr) return {};
  return value;
}

std::int64_t number(const std::string& text) noexcept {
  return std::strtoll(text.c_str(), nullptr, 10);
}

FoundMessage describe(natsMsg* message, std::uint64_t sequence) {
  FoundMessage found{.broker_sequence = sequence};
  found.message_id = header(message, "Nats-Msg-Id");
  found.store_id = header(message, "Stela-Store");
  found.sequence = GlobalSequence{number(header(message, "Stela-Sequence"))};
  found.redelivery = number(header(message, "Stela-Redelivery"));
  found.is_ours = !found.store_id.empty() && found.sequence.value() > 0;
  return found;
}

}  // namespace

/// Runs what would block, one job after the other.
class Publisher::Worker {
 public:
  Worker() : thread_{[this](std::stop_token stop) { run(stop); }} {}

  void post(std::function<void()> job) {
    {
      const std::lock_guard lock{mutex_};
      jobs_.push_back(std::move(job));
    }
    changed_.notify_one();
  }

 private:
  void run(std::stop_token stop) {
    for (;;) {
      std::function<void()> job;
      {
        std::unique_lock lock{mutex_};
        if (!changed_.wait(lock, stop, [&] { return !jobs_.empty(); })) return;
        job = std::move(jobs_.front());
        jobs_.pop_front();
      }
      job();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> jobs_;
  std::jthread thread_;
};

/// One connection, from its making to its end.
/// Threads: nats.c's own call on_ack and on_closed; the publisher's worker connects and reads back;
/// the relay's publishes.
class Publisher::Session {
 public:
  Session(const PublisherOptions& options, std::uint64_t number, AnswerSink& sink)
      : options_{options}, layout_{options}, number_{number}, sink_{sink} {}
  ~Session() { end(); }

  void open() {
    try {
      connect();
      answer({.kind = Answer::Kind::connected});
    } catch (const Error& e) {
      answer({.kind = Answer::Kind::disconnected, .detail = e.what()});
    }
  }

  /// Nothing is answered any more.
  void end() noexcept {
    ended_.store(true);
    context_.reset();
    if (connection_) natsConnection_Close(connection_.get());
    connection_.reset();
  }

  void silence() noexcept { ended_.store(true); }

  void publish(const OutgoingMessage& message) {
    const std::string subject = layout_.subject(message.partition, message.event.type());
    natsMsg* raw = nullptr;
    check(natsMsg_Create(&raw, subject.c_str(), nullptr, message.event.payload.data(),
                         static_cast<int>(message.event.payload.size())),
          "making a message");
    MessageHandle owned{raw};
    set_headers(raw, message);
    jsPubOptions publishing;
    jsPubOptions_Init(&publishing);
    // Without it a lost acknowledgement would never be reported.
    publishing.MaxWait = options_.publish_timeout.count();
    {
      const std::lock_guard lock{mutex_};
      requests_.emplace(raw, message.request);
    }
    natsMsg* handed = owned.get();
    const natsStatus status = js_PublishMsgAsync(context_.get(), &handed, &publishing);
    if (status == NATS_OK) {
      owned.release();
      return;
    }
    take_request(raw);
    answer({.request = message.request,
            .kind = status == NATS_MAX_PAYLOAD ? Answer::Kind::refused : Answer::Kind::unknown,
            .detail = std::string{"publishing to "} + subject + ": " + natsStatus_GetText(status)});
  }

  void read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) {
    Answer answer{.request = request, .kind = Answer::Kind::read_back};
    const std::string stream = layout_.stream(partition);
    try {
      if (options_.ensure_stream) ensure_stream(partition);
      if (options_.fence == Fence::subject) {
        read_last(stream, layout_.subject(partition, ""), answer);
      } else {
        read_range(stream, from, answer);
      }
    } catch (const Error& e) {
      answer.kind = Answer::Kind::unknown;
      answer.detail = e.what();
    }
    this->answer(std::move(answer));
  }

 private:
  void connect() {
    natsOptions* raw = nullptr;
    check(natsOptions_Create(&raw), "preparing to connect");
    const OptionsHandle settings{raw};
    check(natsOptions_SetURL(raw, options_.url.c_str()), "taking the URL");
    check(natsOptions_SetTimeout(raw, options_.connect_timeout.count()), "setting the time-out");
    // A connection that comes back by itself would send what was given up long ago.
    check(natsOptions_SetAllowReconnect(raw, false), "refusing to reconnect");
    check(natsOptions_SetClosedCB(raw, on_closed, this), "listening for the end");
    natsConnection* connection = nullptr;
    check(natsConnection_Connect(&connection, raw), "connecting to " + options_.url);
    connection_.reset(connection);
    jsOptions settings_of_context;
    jsOptions_Init(&settings_of_context);
    settings_of_context.PublishAsync.AckHandler = on_ack;
    settings_of_context.PublishAsync.AckHandlerClosure = this;
    jsCtx* context = nullptr;
    check(natsConnection_JetStream(&context, connection, &settings_of_context), "using JetStream");
    context_.reset(context);
  }

  void set_headers(natsMsg* raw, const OutgoingMessage& message) {
    const auto set = [&](const char* name, const std::string& value) {
      check(natsMsgHeader_Set(raw, name, value.c_str()), "setting a header");
    };
    set("Nats-Msg-Id", std::string{message.message_id});
    if (message.predecessor) {
      const std::string last = std::to_string(message.predecessor->broker_sequence);
      set(options_.fence == Fence::subject ? "Nats-Expected-Last-Subject-Sequence"
                                           : "Nats-Expected-Last-Sequence",
          last);
      if (options_.fence == Fence::stream && !message.predecessor->message_id.empty()) {
        set("Nats-Expected-Last-Msg-Id", std::string{message.predecessor->message_id});
      }
    }
    set("Stela-Store", std::string{message.store_id});
    set("Stela-Sequence", std::to_string(message.event.sequence.value()));
    if (message.redelivery > 0) set("Stela-Redelivery", std::to_string(message.redelivery));
  }

  void ensure_stream(PartitionId partition) {
    const std::string name = layout_.stream(partition);
    if (!made_.insert(name).second) return;
    const std::string subjects = layout_.subjects(partition);
    const char* subject = subjects.c_str();
    jsStreamConfig config;
    jsStreamConfig_Init(&config);
    config.Name = name.c_str();
    config.Subjects = &subject;
    config.SubjectsLen = 1;
    config.Storage = js_FileStorage;
    config.Retention = js_LimitsPolicy;
    config.Discard = js_DiscardNew;
    // The server answers alike whether it makes the stream or has it with this configuration.
    jsErrCode code{};
    check(js_AddStream(nullptr, context_.get(), &config, nullptr, &code),
          "making the stream '" + name + "' (JetStream error " +
              std::to_string(static_cast<int>(code)) + ")");
  }

  void read_range(const std::string& stream, std::uint64_t from, Answer& answer) {
    jsErrCode code{};
    jsStreamInfo* raw = nullptr;
    const natsStatus status =
        js_GetStreamInfo(&raw, context_.get(), stream.c_str(), nullptr, &code);
    if (status != NATS_OK) return explain(stream, status, static_cast<int>(code), answer);
    const StreamInfoHandle info{raw};
    answer.first_sequence = info->State.FirstSeq;
    answer.last_sequence = info->State.LastSeq;
    for (std::uint64_t at = std::max(from, answer.first_sequence);
         at <= answer.last_sequence && answer.found.size() < most_found; ++at) {
      natsMsg* message = nullptr;
      if (js_GetMsg(&message, context_.get(), stream.c_str(), at, nullptr, &code) != NATS_OK) {
        continue;
      }
      const MessageHandle owned{message};
      answer.found.push_back(describe(message, at));
    }
  }

  void read_last(const std::string& stream, const std::string& subject, Answer& answer) {
    jsErrCode code{};
    jsStreamInfo* raw = nullptr;
    natsStatus status = js_GetStreamInfo(&raw, context_.get(), stream.c_str(), nullptr, &code);
    if (status != NATS_OK) return explain(stream, status, static_cast<int>(code), answer);
    const StreamInfoHandle info{raw};
    answer.first_sequence = info->State.FirstSeq;
    natsMsg* message = nullptr;
    status =
        js_GetLastMsg(&message, context_.get(), stream.c_str(), subject.c_str(), nullptr, &code);
    if (status == NATS_NOT_FOUND) return;
    if (status != NATS_OK) return explain(stream, status, static_cast<int>(code), answer);
    const MessageHandle owned{message};
    answer.last_sequence = natsMsg_GetSequence(message);
    answer.found.push_back(describe(message, answer.last_sequence));
  }

  static void explain(const std::string& stream, natsStatus status, int code, Answer& answer) {
    const bool missing = status == NATS_NOT_FOUND || status == NATS_NO_RESPONDERS || code == 10059;
    answer.kind = missing ? Answer::Kind::misconfigured : Answer::Kind::unknown;
    answer.detail = missing ? "there is no JetStream stream '" + stream +
                                  "'; make it, or let ensure_stream do so"
                            : "reading stream '" + stream + "': " + natsStatus_GetText(status);
  }

  static void on_ack(jsCtx*, natsMsg* raw, jsPubAck* ack, jsPubAckErr* error, void* closure) {
    auto& session = *static_cast<Session*>(closure);
    const MessageHandle message{raw};
    Answer answer{.request = session.take_request(raw)};
    if (ack != nullptr) {
      answer.kind = ack->Duplicate ? Answer::Kind::stored_before : Answer::Kind::stored;
      answer.broker_sequence = ack->Sequence;
    } else if (error != nullptr) {
      answer.kind = kind_of(error->Err, static_cast<int>(error->ErrCode));
      answer.detail = error->ErrText != nullptr ? error->ErrText : natsStatus_GetText(error->Err);
    }
    session.answer(std::move(answer));
  }

  static void on_closed(natsConnection*, void* closure) {
    static_cast<Session*>(closure)->answer(
        {.kind = Answer::Kind::disconnected, .detail = "the connection is closed"});
  }

  std::uint64_t take_request(natsMsg* message) {
    const std::lock_guard lock{mutex_};
    const auto found = requests_.find(message);
    if (found == requests_.end()) return 0;
    const std::uint64_t request = found->second;
    requests_.erase(found);
    return request;
  }

  void answer(Answer answer) {
    if (ended_.load()) return;
    answer.session = number_;
    sink_.take(std::move(answer));
  }

  const PublisherOptions& options_;
  const Layout layout_;
  const std::uint64_t number_;
  AnswerSink& sink_;
  std::atomic<bool> ended_{false};
  ConnectionHandle connection_;
  ContextHandle context_;
  std::set<std::string> made_;
  std::mutex mutex_;
  /// Guarded by mutex_. nats.c hands back the message that it was given.
  std::unordered_map<natsMsg*, std::uint64_t> requests_;
};

Publisher::Publisher(const PublisherOptions& options)
    : options_{options}, worker_{std::make_unique<Worker>()} {}

Publisher::~Publisher() {
  disconnect();
}

bool Publisher::can(Fence fence) const noexcept {
  return fence == options_.fence;
}

void Publisher::connect(std::uint64_t session, AnswerSink& sink) {
  disconnect();
  session_ = std::make_shared<Session>(options_, session, sink);
  worker_->post([opening = session_] { opening->open(); });
}

void Publisher::disconnect() noexcept {
  if (!session_) return;
  session_->silence();
  // Closing waits for nats.c's threads: not on the caller's time.
  worker_->post([ending = std::move(session_)] { ending->end(); });
  session_.reset();
}

void Publisher::publish(const OutgoingMessage& message) {
  if (session_) session_->publish(message);
}

void Publisher::read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) {
  if (!session_) return;
  worker_->post([session = session_, request, partition, from] {
    session->read_back(request, partition, from);
  });
}

void Publisher::flush() {}

}  // namespace stela::nats
