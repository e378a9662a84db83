#include <stela/framework/error.hpp>
#include <stela/nats/publisher.hpp>

#include <nats/nats.h>

namespace stela::nats {
namespace {

void check(natsStatus status, const std::string& doing) {
  if (status == NATS_OK) return;
  throw BrokerFailed{doing + " failed: " + natsStatus_GetText(status)};
}

template <class T, void (*Destroy)(T*)>
struct Destroyer {
  void operator()(T* object) const noexcept { Destroy(object); }
};

using Options = std::unique_ptr<natsOptions, Destroyer<natsOptions, natsOptions_Destroy>>;
using Connection =
    std::unique_ptr<natsConnection, Destroyer<natsConnection, natsConnection_Destroy>>;
using Context = std::unique_ptr<jsCtx, Destroyer<jsCtx, jsCtx_Destroy>>;
using Message = std::unique_ptr<natsMsg, Destroyer<natsMsg, natsMsg_Destroy>>;

}  // namespace

struct Publisher::Session {
  Connection connection;
  Context context;
};

Publisher::Publisher(const PublisherOptions& options)
    : session_{std::make_unique<Session>()}, options_{options} {
  natsOptions* raw_options = nullptr;
  check(natsOptions_Create(&raw_options), "preparing to connect");
  const Options settings{raw_options};
  check(natsOptions_SetURL(raw_options, options.url.c_str()), "taking the URL");
  natsConnection* connection = nullptr;
  check(natsConnection_Connect(&connection, raw_options), "connecting to " + options.url);
  session_->connection.reset(connection);
  jsCtx* context = nullptr;
  check(natsConnection_JetStream(&context, connection, nullptr), "using JetStream");
  session_->context.reset(context);
  if (options.ensure_stream) ensure_stream();
}

void Publisher::ensure_stream() {
  const std::string subjects = options_.prefix + ".>";
  const char* subject = subjects.c_str();
  jsStreamConfig config;
  jsStreamConfig_Init(&config);
  config.Name = options_.stream.c_str();
  config.Subjects = &subject;
  config.SubjectsLen = 1;
  config.Storage = js_FileStorage;
  config.Retention = js_LimitsPolicy;
  config.Discard = js_DiscardNew;
  // The server answers alike whether it makes the stream or has it with this configuration.
  jsErrCode code{};
  check(js_AddStream(nullptr, session_->context.get(), &config, nullptr, &code),
        "making the stream '" + options_.stream + "' (JetStream error " +
            std::to_string(static_cast<int>(code)) + ")");
}

Publisher::~Publisher() = default;

void Publisher::publish(const StoredEvent& event) {
  const std::string subject = options_.prefix + '.' + event.type();
  natsMsg* raw = nullptr;
  check(natsMsg_Create(&raw, subject.c_str(), nullptr, event.payload.data(),
                       static_cast<int>(event.payload.size())),
        "making a message");
  const Message message{raw};
  const std::string id = event.id.to_string();
  jsPubOptions publishing;
  jsPubOptions_Init(&publishing);
  publishing.MaxWait = options_.publish_timeout.count();
  publishing.MsgId = id.c_str();
  jsErrCode code{};
  jsPubAck* ack = nullptr;
  const natsStatus status = js_PublishMsg(&ack, session_->context.get(), raw, &publishing, &code);
  jsPubAck_Destroy(ack);
  check(status, "publishing " + event.describe() + " to " + subject + " (JetStream error " +
                    std::to_string(static_cast<int>(code)) + ")");
}

}  // namespace stela::nats
