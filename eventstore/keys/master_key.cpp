#include "master_key.hpp"

#include "database/partial_file.hpp"
#include "seal.hpp"

#include <stela/framework/error.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

namespace stela::keys {
namespace {

constexpr std::string_view master_label = "stela master key 1";
constexpr std::size_t number_size = 8;
/// The size of the wrapped text: the key and its identity. A key management service may accept no
/// more.
constexpr std::size_t wrapped_size = Secret::size + sizeof(Code) + number_size;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw StoreFailed{"the master key '" + path + "' " + why};
}

Secret read_master(const std::string& path) {
  struct stat place {};
  if (::stat(path.c_str(), &place) == 0 && S_ISFIFO(place.st_mode)) refuse(path, "is a pipe");
  const std::unique_ptr<FILE, int (*)(FILE*)> file{std::fopen(path.c_str(), "rbe"), &std::fclose};
  if (file == nullptr) {
    refuse(path, std::string{"can't be read: "} + std::strerror(errno) +
                     "; without it none of the keys can be used: put it back from where it is "
                     "kept, for the user that runs this process");
  }
  std::setbuf(file.get(), nullptr);  // a buffer would keep a copy
  struct stat status {};
  if (::fstat(fileno(file.get()), &status) != 0) refuse(path, "can't be looked at");
  if ((status.st_mode & 077) != 0) {
    refuse(path, "may be read by others; chmod 600 it, and if they aren't trusted, change it");
  }
  Wiped<Secret::size + 1> bytes;
  if (std::fread(bytes.bytes.data(), 1, bytes.bytes.size(), file.get()) != Secret::size) {
    refuse(path,
           "must have exactly 32 bytes; 'head -c 32 /dev/urandom' makes a new one, but an existing "
           "key store needs the one that it was made with");
  }
  return Secret{std::span{bytes.bytes}.first<Secret::size>()};
}

}  // namespace

bool make_key_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return false;
  database::PartialFile file{path};
  file.write(text_of(Secret::random().bytes()));
  return file.publish();
}

KeyEncryptionKeys::KeyEncryptionKeys(MasterKey master, const Uuid& key_store)
    : key_store_{key_store}, master_{std::move(master)} {
  if (!master_.wrap || !master_.unwrap) {
    throw UsageError{"a master key needs both `wrap` and `unwrap`"};
  }
}

MasterKey KeyEncryptionKeys::master() const {
  const std::lock_guard lock{mutex_};
  return master_;
}

void KeyEncryptionKeys::set_master(MasterKey master) {
  const std::lock_guard lock{mutex_};
  master_ = std::move(master);
}

void KeyEncryptionKeys::clear() {
  const std::lock_guard lock{mutex_};
  keys_.clear();
}

std::string KeyEncryptionKeys::place_of(std::int64_t number) const {
  return std::string{text_of(key_store_.bytes())} + bytes_of(number);
}

std::string KeyEncryptionKeys::wrap(std::int64_t number, const Secret& key) const {
  Wiped<wrapped_size> plain;
  const std::string place = place_of(number);
  std::copy(place.begin(), place.end(),
            std::copy(key.bytes().begin(), key.bytes().end(), plain.bytes.begin()));
  const std::string wrapped{text_of(master().wrap(plain.bytes))};
  constexpr std::size_t most = std::size_t{64} * 1024;
  const auto back = wrapped.size() <= most ? unwrapped(number, wrapped) : nullptr;
  if (back != nullptr && std::ranges::equal(back->bytes(), key.bytes())) return wrapped;
  throw StoreFailed{
      "the master key's `unwrap` doesn't take back what its `wrap` gives, so nothing was changed; "
      "both must use one key"};
}

std::shared_ptr<const Secret> KeyEncryptionKeys::unwrapped(std::int64_t number,
                                                           std::string_view wrapped) const {
  MasterKey::Bytes plain = master().unwrap(span_of(wrapped));
  const std::string_view text = text_of(plain);
  std::shared_ptr<const Secret> key;
  if (text.size() == wrapped_size && text.substr(Secret::size) == place_of(number)) {
    key = std::make_shared<const Secret>(std::span{plain}.first<Secret::size>());
  }
  wipe(plain);
  return key;
}

std::shared_ptr<const Secret> KeyEncryptionKeys::get(std::int64_t number,
                                                     std::string_view wrapped) {
  {
    const std::lock_guard lock{mutex_};
    if (const auto known = keys_.find(number); known != keys_.end()) return known->second;
  }
  std::shared_ptr<const Secret> key = unwrapped(number, wrapped);
  if (key == nullptr) {
    throw StoreFailed{"key-encryption key " + std::to_string(number) +
                      " isn't this key store's: its row was changed; restore a backup"};
  }
  const std::lock_guard lock{mutex_};
  return keys_.try_emplace(number, std::move(key)).first->second;
}

}  // namespace stela::keys

namespace stela {

MasterKey key_file(std::string path) {
  using namespace keys;
  const auto wrap = [path](std::span<const std::uint8_t> bytes) {
    const std::string sealed = seal_bytes(read_master(path), master_label, bytes);
    return MasterKey::Bytes{sealed.begin(), sealed.end()};
  };
  const auto unwrap = [path](std::span<const std::uint8_t> bytes) {
    MasterKey::Bytes plain(wrapped_size);
    if (unseal_bytes(read_master(path), master_label, text_of(bytes), plain)) return plain;
    refuse(
        path,
        "isn't the one of this key store, or the key store is damaged; use its present master "
        "key, which is the newest one if it was ever changed; a backup of the key store needs the "
        "master key of its time");
  };
  return {wrap, unwrap, path};
}

MasterKey key_callback(MasterKey::Change wrap, MasterKey::Change unwrap) {
  return {std::move(wrap), std::move(unwrap)};
}

}  // namespace stela
