// UUIDs: of events, and for whoever needs an id that is unique without asking anybody.
#pragma once

#include <stela/framework/clock.hpp>
#include <stela/framework/export.hpp>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stela {

/// 16 bytes, written as RFC 9562 has it.
class STELA_FRAMEWORK_EXPORT Uuid {
 public:
  using Bytes = std::array<std::uint8_t, 16>;

  constexpr Uuid() = default;
  constexpr explicit Uuid(const Bytes& bytes) noexcept : bytes_{bytes} {}

  /// Nothing unless the text is 36 characters of the usual form, in either case.
  static std::optional<Uuid> parse(std::string_view text) noexcept;

  constexpr const Bytes& bytes() const noexcept { return bytes_; }
  constexpr bool is_nil() const noexcept { return *this == Uuid{}; }
  std::string to_string() const;

  friend constexpr auto operator<=>(const Uuid&, const Uuid&) = default;

 private:
  Bytes bytes_{};
};

/// The id of one event: a UUIDv7, so ids sort roughly by time.
using EventId = Uuid;

/// Where random bytes come from, so that a simulation can replay them.
class STELA_FRAMEWORK_EXPORT Random {
 public:
  virtual ~Random() = default;
  virtual void fill(std::span<std::uint8_t> bytes) = 0;
};

/// The operating system's. StoreFailed if it has none. Threads: any.
STELA_FRAMEWORK_EXPORT Random& system_random() noexcept;

/// Makes UUIDv7s that strictly increase, also within a millisecond and when the clock steps back.
/// Threads: one at a time.
class STELA_FRAMEWORK_EXPORT UuidGenerator {
 public:
  /// Takes its bytes from the operating system.
  UuidGenerator();
  /// `random` must outlive the generator.
  explicit UuidGenerator(Random& random);

  Uuid next(Timestamp now);

 private:
  void draw(std::span<std::uint8_t> bytes);

  Random* random_ = nullptr;
  std::array<std::uint8_t, 512> pool_{};
  std::size_t pool_used_;
  int pool_forks_ = 0;
  std::uint64_t last_ = 0;
};

/// A new UUIDv7 of the host's clock and the operating system's randomness.
STELA_FRAMEWORK_EXPORT Uuid make_uuid();

}  // namespace stela

template <>
struct std::hash<stela::Uuid> {
  std::size_t operator()(const stela::Uuid& id) const noexcept {
    std::uint64_t tail;
    std::memcpy(&tail, id.bytes().data() + 8, sizeof tail);
    return static_cast<std::size_t>(tail);
  }
};
