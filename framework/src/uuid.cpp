#include <stela/framework/detail/forks.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/uuid.hpp>

#include <sys/random.h>

#include <cerrno>
#include <cstring>

namespace stela {
namespace {

constexpr char hex_digits[] = "0123456789abcdef";

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr bool has_dash_before(std::size_t byte) noexcept {
  return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

void fill_from_os(std::span<std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw StoreFailed{std::string{"no random bytes: "} + std::strerror(errno)};
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

class SystemRandom final : public Random {
 public:
  void fill(std::span<std::uint8_t> bytes) override { fill_from_os(bytes); }
};

}  // namespace

Random& system_random() noexcept {
  static SystemRandom random;
  return random;
}

std::optional<Uuid> Uuid::parse(std::string_view text) noexcept {
  if (text.size() != 36) return std::nullopt;
  Bytes bytes;
  std::size_t at = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (has_dash_before(i) && text[at++] != '-') return std::nullopt;
    const int high = hex_value(text[at]);
    const int low = hex_value(text[at + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
    at += 2;
  }
  return Uuid{bytes};
}

std::string Uuid::to_string() const {
  std::string text(36, '-');
  char* out = text.data();
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    if (has_dash_before(i)) ++out;
    *out++ = hex_digits[bytes_[i] >> 4];
    *out++ = hex_digits[bytes_[i] & 15];
  }
  return text;
}

UuidGenerator::UuidGenerator() : pool_used_{pool_.size()} {}
UuidGenerator::UuidGenerator(Random& random) : random_{&random}, pool_used_{pool_.size()} {}

void UuidGenerator::draw(std::span<std::uint8_t> bytes) {
  if (random_ != nullptr) return random_->fill(bytes);
  // A forked child must not hand out its parent's bytes again.
  const int forks = detail::count_forks();
  if (pool_used_ + bytes.size() > pool_.size() || pool_forks_ != forks) {
    fill_from_os(pool_);
    pool_used_ = 0;
    pool_forks_ = forks;
  }
  std::memcpy(bytes.data(), pool_.data() + pool_used_, bytes.size());
  pool_used_ += bytes.size();
}

Uuid UuidGenerator::next(Timestamp now) {
  // RFC 9562, 6.2 method 3: 48 bits of milliseconds, then 12 bits for the rest of the millisecond,
  // incremented where the clock is too coarse.
  const auto micros = static_cast<std::uint64_t>(now.time_since_epoch().count());
  std::uint64_t time = (micros / 1000) << 12 | (micros % 1000) * 4096 / 1000;
  if (time <= last_) time = last_ + 1;
  last_ = time;

  Uuid::Bytes bytes;
  const std::uint64_t milliseconds = time >> 12;
  for (std::size_t i = 0; i < 6; ++i) {
    bytes[i] = static_cast<std::uint8_t>(milliseconds >> (40 - 8 * i));
  }
  bytes[6] = static_cast<std::uint8_t>(0x70 | (time >> 8 & 0x0f));
  bytes[7] = static_cast<std::uint8_t>(time);
  draw(std::span{bytes}.subspan(8));
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3f) | 0x80);
  return Uuid{bytes};
}

Uuid make_uuid() {
  thread_local UuidGenerator generator;
  return generator.next(system_clock().now());
}

}  // namespace stela
