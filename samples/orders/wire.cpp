// A message in JetStream, read with nats.c alone: the view of a consumer in any language.
#include "commands.hpp"

#include <nats/nats.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <vector>

namespace orders {
namespace {

void check(natsStatus status, std::string_view doing) {
  if (status != NATS_OK) {
    throw std::runtime_error{std::string{doing} + ": " + natsStatus_GetText(status)};
  }
}

/// The headers by name, in order.
void print_headers(natsMsg* message) {
  const char** keys = nullptr;
  int count = 0;
  if (natsMsgHeader_Keys(message, &keys, &count) != NATS_OK) return;
  std::vector<std::string> names{keys, keys + count};
  std::free(keys);  // NOLINT: nats.c allocates it so.
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const char* value = nullptr;
    natsMsgHeader_Get(message, name.c_str(), &value);
    std::cout << "  " << name << ": " << (value != nullptr ? value : "") << '\n';
  }
}

using Context = std::unique_ptr<jsCtx, decltype(&jsCtx_Destroy)>;
using Message = std::unique_ptr<natsMsg, decltype(&natsMsg_Destroy)>;

Message message_at(jsCtx* context, std::uint64_t sequence) {
  natsMsg* message = nullptr;
  check(js_GetMsg(&message, context, "SHOP", sequence, nullptr, nullptr),
        "message " + std::to_string(sequence));
  return {message, natsMsg_Destroy};
}

/// Checks that the stream has each published event once, and all in order.
void compare(stela::EventStore& store, jsCtx* context, std::uint64_t messages) {
  std::vector<std::string> recorded;
  for (const stela::StoredEvent& event : store.read_all()) {
    if (event.publishes()) recorded.push_back(event.id.to_string());
  }
  std::vector<std::string> published;
  for (std::uint64_t at = 1; at <= messages; ++at) {
    const char* id = nullptr;
    const Message message = message_at(context, at);
    natsMsgHeader_Get(message.get(), "Nats-Msg-Id", &id);
    published.emplace_back(id != nullptr ? id : "");
  }
  std::cout << messages << " messages in the stream SHOP, " << recorded.size()
            << " events to be published: "
            << (recorded == published ? "the same, once each and in order"
                                      : "they are not the same")
            << '\n';
  if (recorded != published) throw std::runtime_error{"the stream isn't what was recorded"};
}

void print(natsMsg* message) {
  std::cout << natsMsg_GetSubject(message) << '\n';
  print_headers(message);
  std::cout << "  "
            << std::string_view{natsMsg_GetData(message),
                                static_cast<std::size_t>(natsMsg_GetDataLength(message))}
            << '\n';
}

}  // namespace

void show_wire(Application& application, std::span<const std::string> arguments) {
  natsConnection* connection = nullptr;
  check(natsConnection_ConnectTo(&connection, arguments[0].c_str()), "connecting");
  const std::unique_ptr<natsConnection, decltype(&natsConnection_Destroy)> close{
      connection, natsConnection_Destroy};
  jsCtx* made = nullptr;
  check(natsConnection_JetStream(&made, connection, nullptr), "using JetStream");
  const Context context{made, jsCtx_Destroy};
  if (arguments.size() > 1) {
    const std::int64_t sequence = number(arguments[1], "SEQUENCE");
    print(message_at(context.get(), static_cast<std::uint64_t>(sequence)).get());
    return;
  }
  jsStreamInfo* info = nullptr;
  check(js_GetStreamInfo(&info, context.get(), "SHOP", nullptr, nullptr), "the stream SHOP");
  const std::uint64_t messages = info->State.Msgs;
  jsStreamInfo_Destroy(info);
  compare(application.store, context.get(), messages);
}

}  // namespace orders
