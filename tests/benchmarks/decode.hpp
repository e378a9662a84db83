// Other ways of decoding a basket's events: by hand, and with cereal's stock JSON archive.
#pragma once

#include "shop.hpp"

#include <cereal/archives/json.hpp>

#include <cstring>
#include <istream>
#include <streambuf>
#include <string>
#include <string_view>

namespace stela::bench {

/// Reads portable binary as somebody would who writes it out for one struct: no checks, and
/// into an object that is used again.
class HandDecoder {
 public:
  explicit HandDecoder(std::string_view payload) noexcept : at_{payload.data() + 1} {}

  void into(LineAdded& event) {
    text(event.customer);
    text(event.product);
    value(event.quantity);
    value(event.unit_cents);
    text(event.currency);
    value(event.gift);
    text(event.note);
  }
  void into(LineDropped& event) {
    text(event.customer);
    text(event.product);
    value(event.quantity);
    value(event.refund_cents);
    text(event.currency);
    text(event.reason);
  }

 private:
  template <class T>
  void value(T& into) noexcept {
    std::memcpy(&into, at_, sizeof into);
    at_ += sizeof into;
  }
  void text(std::string& value) {
    std::uint64_t size = 0;
    std::memcpy(&size, at_, sizeof size);
    value.assign(at_ + sizeof size, size);
    at_ += sizeof size + size;
  }

  const char* at_;
};

/// cereal's stock JSON archive over bytes that aren't copied, the stream used again.
class StockJsonDecoder {
 public:
  template <class E>
  void decode(std::string_view payload, E& event) {
    buffer_.show(payload);
    stream_.clear();
    cereal::JSONInputArchive archive{stream_};
    event.serialize(archive);
  }

 private:
  struct Buffer : std::streambuf {
    void show(std::string_view bytes) {
      char* const begin = const_cast<char*>(bytes.data());
      setg(begin, begin, begin + bytes.size());
    }
  };
  Buffer buffer_;
  std::istream stream_{&buffer_};
};

/// Applies what `decode(payload, event)` makes of each event: what the bare loops do with a row.
template <class Decode>
class BareApply {
 public:
  BareApply(std::int64_t added_kind, Decode decode)
      : added_kind_{added_kind}, decode_{std::move(decode)} {}

  void operator()(std::int64_t kind, std::string_view payload) {
    if (kind == added_kind_) {
      decode_(payload, added_);
      state_.apply(added_);
    } else {
      decode_(payload, dropped_);
      state_.apply(dropped_);
    }
  }

  BasketState take() { return std::exchange(state_, {}); }

 private:
  std::int64_t added_kind_;
  Decode decode_;
  LineAdded added_;
  LineDropped dropped_;
  BasketState state_;
};

inline auto apply_by_hand(std::int64_t added_kind) {
  return BareApply{added_kind,
                   [](std::string_view payload, auto& event) { HandDecoder{payload}.into(event); }};
}

inline auto apply_with_stock_json(std::int64_t added_kind) {
  return BareApply{added_kind,
                   [decoder = std::make_unique<StockJsonDecoder>()](
                       std::string_view payload, auto& event) { decoder->decode(payload, event); }};
}

}  // namespace stela::bench
