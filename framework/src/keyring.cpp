#include <stela/framework/error.hpp>
#include <stela/framework/keyring.hpp>
#include <stela/framework/uuid.hpp>

#include <sodium.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace stela {
namespace {

constexpr int base64url = sodium_base64_VARIANT_URLSAFE_NO_PADDING;

void begin_sodium() {
  static const bool has_begun = sodium_init() >= 0;
  if (!has_begun) throw StoreFailed{"libsodium can't be used on this machine"};
}

/// Places for secrets in pages that are locked in memory. A page that the system refuses to lock,
/// because of this process's limit, is used anyway.
class SecretPlaces {
 public:
  std::uint8_t* take() {
    const std::lock_guard lock{mutex_};
    if (free_.empty()) add_page();
    std::uint8_t* const place = free_.back();
    free_.pop_back();
    return place;
  }
  void give_back(std::uint8_t* place) noexcept {
    sodium_memzero(place, Secret::size);
    const std::lock_guard lock{mutex_};
    free_.push_back(place);  // it has room: `add_page` reserved it
  }

 private:
  static constexpr std::size_t page_size = 4096;

  void add_page() {
    begin_sodium();
    places_ += page_size / Secret::size;
    free_.reserve(places_);
    auto* const page =
        static_cast<std::uint8_t*>(::operator new (page_size, std::align_val_t{page_size}));
    sodium_mlock(page, page_size);
    for (std::size_t at = 0; at < page_size; at += Secret::size) free_.push_back(page + at);
  }

  std::mutex mutex_;
  std::vector<std::uint8_t*> free_;
  std::size_t places_ = 0;
};

/// Never destroyed, because secrets may outlive static objects.
SecretPlaces& places() {
  static auto* const all = new SecretPlaces;
  return *all;
}

}  // namespace

KeyId KeyId::make() {
  KeyId id;
  system_random().fill(id.bytes);
  return id;
}

std::string KeyId::to_string() const {
  std::string text(sodium_base64_ENCODED_LEN(sizeof bytes, base64url), '\0');
  sodium_bin2base64(text.data(), text.size(), bytes.data(), bytes.size(), base64url);
  text.pop_back();  // its terminating zero
  return text;
}

std::optional<KeyId> KeyId::parse(std::string_view text) noexcept {
  KeyId id;
  std::size_t size = 0;
  const bool fits = sodium_base642bin(id.bytes.data(), id.bytes.size(), text.data(), text.size(),
                                      nullptr, &size, nullptr, base64url) == 0;
  if (!fits || size != id.bytes.size()) return std::nullopt;
  return id;
}

Secret::Secret() : bytes_{places().take()} {}

Secret::Secret(Bytes bytes) : Secret{} {
  std::copy(bytes.begin(), bytes.end(), bytes_);
}

Secret Secret::random() {
  Secret secret;
  system_random().fill({secret.bytes_, size});
  return secret;
}

Secret::~Secret() {
  if (bytes_ != nullptr) places().give_back(bytes_);
}

Keyring::~Keyring() = default;

}  // namespace stela
