// A version of a stream, as the inbox's statements take it.
#pragma once

#include <cstdint>
#include <string_view>

namespace stela::nats {

/// One that a consumer gets. The text belongs to whoever made the key.
struct InboxKey {
  std::int64_t consumer;
  /// The store of the stream.
  std::string_view source;
  std::string_view stream;
  std::int64_t version;
};

/// A statement about one version of a stream.
template <class Statement>
Statement of_version(const InboxKey& key) {
  return {
      .consumer = key.consumer, .source = key.source, .stream = key.stream, .version = key.version};
}

/// A statement about a stream as a whole.
template <class Statement>
Statement of_stream(const InboxKey& key) {
  return {.consumer = key.consumer, .source = key.source, .stream = key.stream};
}

}  // namespace stela::nats
