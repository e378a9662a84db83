// UUIDs, for events and other ids that must be unique without coordination.
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

/// 16 bytes, written as in RFC 9562.
class STELA_FRAMEWORK_EXPORT Uuid {
 public:
  using Bytes = std::array<std::uint8_t, 16>;

  constexpr Uuid() = default;
  constexpr explicit Uuid(const Bytes& bytes) noexcept : bytes_{bytes} {}

  /// Empty unless the text is 36 characters of the usual form, in either case.
  static std::optional<Uuid> parse(std::string_view text) noexcept;

  constexpr const Bytes& bytes() const noexcept { return bytes_; }
  constexpr bool is_nil() const noexcept { return *this == Uuid{}; }
  std::string to_string() const;

  friend constexpr auto operator<=>(const Uuid&, const Uuid&) = default;

 private:
  Bytes bytes_{};
};

/// The id of an event: a UUIDv7, so that ids sort roughly by time.
using EventId = Uuid;

/// A source of random bytes. A simulation can replace it to repeat a run.
class STELA_FRAMEWORK_EXPORT Random {
 public:
  virtual ~Random() = default;
  virtual void fill(std::span<std::uint8_t> bytes) = 0;
};

/// Random bytes of the operating system. StoreFailed if it gives none. Threads: any.
STELA_FRAMEWORK_EXPORT Random& system_random() noexcept;

/// Makes UUIDv7s that strictly increase, also within a millisecond and when the clock goes back.
/// Threads: one at a time.
class STELA_FRAMEWORK_EXPORT UuidGenerator {
 public:
  /// Uses the operating system's random bytes.
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

/// A new UUIDv7 from the host's clock and the operating system's random bytes.
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
