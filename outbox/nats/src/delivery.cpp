#include "delivery.hpp"

#include "database/storable_text.hpp"

#include <stela/framework/codec/detail/json_reader.hpp>
#include <stela/framework/codec/detail/json_writer.hpp>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>

namespace stela::nats {
namespace {

/// Frees a list that nats.c allocated.
struct FreeList {
  void operator()(const char** list) const noexcept { free(static_cast<void*>(list)); }
};

}  // namespace

std::string_view MessageHeaders::get(const char* name) const {
  const char* value = nullptr;
  if (natsMsgHeader_Get(message_, name, &value) != NATS_OK || value == nullptr) return {};
  return value;
}

std::vector<const char*> MessageHeaders::all(const char* name) const {
  const char** values = nullptr;
  int count = 0;
  if (natsMsgHeader_Values(message_, name, &values, &count) != NATS_OK) return {};
  const std::unique_ptr<const char*, FreeList> owned{values};
  return {values, values + count};
}

bool MessageHeaders::has_more_than_one(const char* name) const {
  return all(name).size() > 1;
}

void MessageHeaders::for_each(FunctionRef<void(std::string_view, std::string_view)> use) const {
  const char** keys = nullptr;
  int count = 0;
  if (natsMsgHeader_Keys(message_, &keys, &count) != NATS_OK) return;
  const std::unique_ptr<const char*, FreeList> owned{keys};
  for (int i = 0; i < count; ++i) {
    for (const char* const value : all(keys[i])) use(keys[i], value);
  }
}

std::string_view KeptHeaders::get(const char* name) const {
  const auto first = headers_.lower_bound(name);
  const bool is_there = first != headers_.end() && first->first == name;
  return is_there ? std::string_view{first->second} : std::string_view{};
}

void KeptHeaders::for_each(FunctionRef<void(std::string_view, std::string_view)> use) const {
  for (const auto& [name, value] : headers_) use(name, value);
}

std::string KeptHeaders::to_json(const Headers& headers) {
  std::string text;
  json::ObjectWriter object{text};
  headers.for_each([&](std::string_view name, std::string_view value) {
    // A foreign message may contain anything; text that isn't UTF-8 is kept in a printable form.
    std::string shown{value};
    if (!json::is_utf8(shown)) shown.clear(), append_percent_encoded(shown, value);
    if (json::is_utf8(name)) object.add(name, shown);
  });
  object.close();
  return text;
}

KeptHeaders::Map KeptHeaders::from_json(std::string_view text) {
  Map headers;
  json::Reader reader{text};
  reader.open_object();
  std::string name;
  while (reader.next_member(name)) headers.emplace(name, reader.get_string());
  reader.close();
  reader.finish();
  return headers;
}

Delivery deliver(MessageHandle message, const BrokerPlace& place) {
  Delivery delivery{.message = std::move(message), .place = place};
  try {
    delivery.event = read_envelope(MessageHeaders{delivery.message.get()}, delivery.payload());
  } catch (const CorruptEvent& e) {
    delivery.problem = database::made_storable(e.what());
  }
  return delivery;
}

std::string_view Delivery::payload() const noexcept {
  return {natsMsg_GetData(message.get()),
          static_cast<std::size_t>(natsMsg_GetDataLength(message.get()))};
}

std::string_view Delivery::subject() const noexcept {
  return natsMsg_GetSubject(message.get());
}

// "$JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<consumer's>.<time>.<pending>". Newer
// servers insert two tokens before the stream and append one.
BrokerPlace place_in_reply(std::string_view reply) {
  std::vector<std::string_view> tokens;
  for (std::size_t begin = 0; begin <= reply.size();) {
    const std::size_t end = std::min(reply.find('.', begin), reply.size());
    tokens.push_back(reply.substr(begin, end - begin));
    begin = end + 1;
  }
  const std::size_t stream = tokens.size() >= 11 ? 4 : 2;
  if (tokens.size() < 9) throw BrokerFailed{"a message that JetStream didn't send"};
  BrokerPlace place;
  const auto read = [&](std::size_t token, auto& number) {
    std::from_chars(tokens[token].data(), tokens[token].data() + tokens[token].size(), number);
  };
  read(stream + 3, place.sequence);
  read(stream + 4, place.number);
  read(stream + 5, place.time);
  return place;
}

BrokerPlace place_of(natsMsg* message) {
  const char* const reply = natsMsg_GetReply(message);
  return place_in_reply(reply == nullptr ? std::string_view{} : std::string_view{reply});
}

}  // namespace stela::nats
