// Replies of the JetStream API, as a server writes them.
#pragma once

#include <stela/framework/codec/detail/base64.hpp>
#include <stela/nats/publisher.hpp>

#include <cstdint>
#include <string>

namespace stela::nats::test {

inline PublisherOptions options_of(Fence fence) {
  return {.prefix = "shop", .stream = "SHOP", .fence = fence};
}

/// Of sixteen partitions with streams of their own.
inline std::string subjects_of_partitions() {
  std::string all;
  for (int i = 1; i <= 16; ++i) {
    all.append(all.empty() ? "" : ",")
        .append("\"shop_")
        .append(PartitionId{i}.label())
        .append(".>\"");
  }
  return all;
}

/// A stream that is as it should be.
inline std::string stream_of(std::uint64_t first, std::uint64_t last, std::uint64_t bytes = 100,
                             const std::string& config = {}) {
  const std::uint64_t messages = last + 1 - first;
  return R"({"type":"io.nats.jetstream.api.v1.stream_info_response","config":{"name":"SHOP",)"
         R"("subjects":["shop.>",)" +
         subjects_of_partitions() + R"(],"retention":"limits","max_msgs":-1,)" + config +
         R"("storage":"file","discard":"new"},"state":{"messages":)" + std::to_string(messages) +
         R"(,"bytes":)" + std::to_string(messages * bytes) + R"(,"first_seq":)" +
         std::to_string(first) + R"(,"last_seq":)" + std::to_string(last) +
         R"(,"consumer_count":0},"cluster":null})";
}

inline std::string message_of(std::uint64_t sequence, std::size_t size = 2) {
  std::string headers;
  base64::append(headers, "NATS/1.0\r\nNats-Msg-Id: id-" + std::to_string(sequence) +
                              "\r\nStela-Store: store\r\nStela-Sequence:  " +
                              std::to_string(sequence * 10) + "\r\n\r\n");
  return R"({"type":"…","message":{"subject":"shop.placed","seq":)" + std::to_string(sequence) +
         R"(,"hdrs":")" + headers + R"(","data":")" + std::string(size, 'A') +
         R"(","time":"2026-11-22T10:00:00Z"}})";
}

inline std::string error_of(int code, int status) {
  return R"({"type":"…","error":{"code":)" + std::to_string(status) + R"(,"err_code":)" +
         std::to_string(code) + R"(,"description":"why"}})";
}

}  // namespace stela::nats::test
