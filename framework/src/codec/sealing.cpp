#include <stela/framework/codec/codec_error.hpp>
#include <stela/framework/codec/detail/sealed_value.hpp>
#include <stela/framework/error.hpp>

#include <sodium.h>

#include <algorithm>
#include <array>

namespace stela {
namespace codec {
namespace {

constexpr int base64url = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
constexpr std::size_t nonce_size = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
constexpr std::size_t tag_size = crypto_aead_xchacha20poly1305_ietf_ABYTES;
constexpr std::size_t padding = 32;
constexpr char format_version = 1;
constexpr char xchacha20_poly1305 = 1;

constexpr std::string_view sealed_mark = "~s1.";
constexpr std::string_view forgotten_mark = "~f1.";
constexpr std::size_t key_id_text = 22;
/// The marks in portable binary.
constexpr char sealed_byte = 1;
constexpr char forgotten_byte = 2;

unsigned char* bytes_of(std::string& text) noexcept {
  return reinterpret_cast<unsigned char*>(text.data());
}
const unsigned char* bytes_of(std::string_view text) noexcept {
  return reinterpret_cast<const unsigned char*>(text.data());
}
std::string_view text_of(const KeyId& id) noexcept {
  return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
}

void add_part(std::string& to, std::string_view part) {
  const auto size = static_cast<std::uint32_t>(part.size());
  for (const int shift : {0, 8, 16, 24}) to += static_cast<char>(size >> shift & 0xff);
  to += part;
}

/// The additional data that a box is authenticated with.
std::string bound_to(const KeyId& key, const Place& place, std::string_view field) {
  std::string bound;
  bound.reserve(64 + place.bytes.size() + field.size());
  add_part(bound, {&format_version, 1});
  add_part(bound, {&xchacha20_poly1305, 1});
  add_part(bound, text_of(key));
  const char kind = static_cast<char>(place.kind);
  add_part(bound, {&kind, 1});
  add_part(bound, place.bytes);
  add_part(bound, field);
  return bound;
}

std::string to_base64url(std::string_view bytes) {
  std::string text(sodium_base64_ENCODED_LEN(bytes.size(), base64url), '\0');
  sodium_bin2base64(text.data(), text.size(), bytes_of(bytes), bytes.size(), base64url);
  text.pop_back();
  return text;
}

/// Empty if the text isn't base64url.
std::string from_base64url(std::string_view text) {
  std::string bytes(text.size(), '\0');
  std::size_t size = 0;
  if (sodium_base642bin(bytes_of(bytes), bytes.size(), text.data(), text.size(), nullptr, &size,
                        nullptr, base64url) != 0) {
    return {};
  }
  bytes.resize(size);
  return bytes;
}

std::string pad(std::string_view plain) {
  std::string padded{plain};
  padded += '\x80';
  padded.append((padding - padded.size() % padding) % padding, '\0');
  return padded;
}

[[noreturn]] void throw_forged() {
  throw CorruptEvent{
      "a personal field was sealed for another place, or its bytes were changed; it isn't opened"};
}

[[noreturn]] void throw_no_text() {
  throw DecodeError{"the text isn't that of a sealed personal field"};
}

struct StoredForm {
  KeyId key;
  bool is_forgotten;
  std::string_view box;
};

std::optional<StoredForm> parse_text(std::string_view stored) {
  const bool is_forgotten = stored.starts_with(forgotten_mark);
  if (!is_forgotten && !stored.starts_with(sealed_mark)) return std::nullopt;
  stored.remove_prefix(sealed_mark.size());
  const auto key = KeyId::parse(stored.substr(0, key_id_text));
  if (!key) return std::nullopt;
  stored.remove_prefix(key_id_text);
  if (is_forgotten)
    return stored.empty() ? std::optional{StoredForm{*key, true, {}}} : std::nullopt;
  if (stored.size() < 2 || stored.front() != '.') return std::nullopt;
  return StoredForm{*key, false, stored.substr(1)};
}

std::optional<StoredForm> parse_bytes(std::string_view stored) {
  KeyId key;
  if (stored.size() < 1 + key.bytes.size()) return std::nullopt;
  std::copy_n(bytes_of(stored) + 1, key.bytes.size(), key.bytes.begin());
  const std::string_view box = stored.substr(1 + key.bytes.size());
  if (stored.front() == forgotten_byte && box.empty()) return StoredForm{key, true, {}};
  if (stored.front() != sealed_byte || box.empty()) return std::nullopt;
  return StoredForm{key, false, box};
}

}  // namespace

Place Place::of_event(const EventId& id) {
  return {Kind::event, {reinterpret_cast<const char*>(id.bytes().data()), id.bytes().size()}};
}

Place Place::of_snapshot(const StreamId& stream, int state_version) {
  std::string bytes;
  add_part(bytes, stream.name());
  add_part(bytes, std::to_string(state_version));
  return {Kind::snapshot, std::move(bytes)};
}

Place Place::of_timer(std::string_view process, std::string_view key, std::string_view kind,
                      int version) {
  std::string bytes;
  for (const std::string_view part : {process, key, kind}) add_part(bytes, part);
  add_part(bytes, std::to_string(version));
  return {Kind::timer, std::move(bytes)};
}

std::string SealedValue::open() const {
  const std::string raw = is_json ? from_base64url(box) : box;
  if (key == nullptr || raw.size() < nonce_size + tag_size) throw_forged();
  std::string plain(raw.size() - nonce_size - tag_size, '\0');
  const unsigned char* const nonce = bytes_of(std::string_view{raw});
  if (crypto_aead_xchacha20poly1305_ietf_decrypt(bytes_of(plain), nullptr, nullptr,
                                                 nonce + nonce_size, raw.size() - nonce_size,
                                                 bytes_of(std::string_view{bound}), bound.size(),
                                                 nonce, key->secret.bytes().data()) != 0) {
    throw_forged();
  }
  const std::size_t end = plain.find_last_not_of('\0');
  if (end == std::string::npos || plain[end] != '\x80') throw_forged();
  plain.resize(end);
  return plain;
}

std::string SealedValue::text() const {
  if (is_forgotten) return forgotten_form(key_id, true);
  if (bound.empty()) {
    throw UsageError{
        "a personal field that was decoded apart from its event has no text that opens again"};
  }
  std::string text{sealed_mark};
  text.append(key_id.to_string()).append(1, '.').append(is_json ? box : to_base64url(box));
  return text.append(is_json ? ".j" : ".b").append(to_base64url(bound));
}

std::shared_ptr<const SealedValue> read_text(std::string_view text, Keyring* keys) {
  std::string_view stored = text;
  std::string bound;
  bool is_json = true;
  if (!text.starts_with(forgotten_mark)) {
    const std::size_t last = text.rfind('.');
    if (last == std::string_view::npos || last + 1 >= text.size()) throw_no_text();
    is_json = text[last + 1] == 'j';
    bound = from_base64url(text.substr(last + 2));
    stored = text.substr(0, last);
    if (bound.empty() || (!is_json && text[last + 1] != 'b')) throw_no_text();
  }
  const auto form = parse_text(stored);
  if (!form) throw_no_text();
  auto value = std::make_shared<SealedValue>();
  value->key_id = form->key;
  value->is_json = is_json;
  value->box = is_json ? std::string{form->box} : from_base64url(form->box);
  value->bound = std::move(bound);
  value->is_forgotten = form->is_forgotten;
  if (keys == nullptr || form->is_forgotten) return value;
  value->key = keys->find(form->key);
  value->is_forgotten = value->key == nullptr;
  return value;
}

bool is_gone(const Sealing& sealing, const SealedValue& value) {
  if (value.is_forgotten) return true;
  return value.key != nullptr && sealing.keys != nullptr &&
         sealing.keys->find(value.key_id) == nullptr;
}

std::string forgotten_form(const KeyId& key, bool as_text) {
  if (as_text) return std::string{forgotten_mark} + key.to_string();
  return std::string{forgotten_byte} + std::string{text_of(key)};
}

std::string seal(Sealing& sealing, const Subject& subject, std::string_view field,
                 std::string_view plain, bool as_text) {
  if (sealing.keys == nullptr) refuse_without_keys(sealing, field);
  const auto key = sealing.keys->key_of(subject);
  if (std::find(sealing.used.begin(), sealing.used.end(), key->id) == sealing.used.end()) {
    sealing.used.push_back(key->id);
    sealing.newest = std::max(sealing.newest, key->number);
  }
  const std::string padded = pad(plain);
  const std::string bound = bound_to(key->id, sealing.place, field);
  std::string box(nonce_size + padded.size() + tag_size, '\0');
  randombytes_buf(box.data(), nonce_size);
  crypto_aead_xchacha20poly1305_ietf_encrypt(bytes_of(box) + nonce_size, nullptr,
                                             bytes_of(std::string_view{padded}), padded.size(),
                                             bytes_of(std::string_view{bound}), bound.size(),
                                             nullptr, bytes_of(box), key->secret.bytes().data());
  if (!as_text) return std::string{sealed_byte}.append(text_of(key->id)).append(box);
  std::string text{sealed_mark};
  return text.append(key->id.to_string()).append(1, '.').append(to_base64url(box));
}

std::shared_ptr<const SealedValue> read_sealed(const Opening* opening, std::string_view field,
                                               std::string_view stored, bool is_text) {
  const auto form = is_text ? parse_text(stored) : parse_bytes(stored);
  if (!form) {
    throw DecodeError{std::string{field} +
                      " is a personal field, and what is stored there isn't sealed"};
  }
  auto value = std::make_shared<SealedValue>();
  value->key_id = form->key;
  value->is_json = is_text;
  value->box = form->box;
  value->is_forgotten = form->is_forgotten;
  if (form->is_forgotten || opening == nullptr) return value;
  value->bound = bound_to(form->key, opening->place, field);
  if (opening->keys == nullptr) return value;
  value->key = opening->keys->find(form->key);
  value->is_forgotten = value->key == nullptr;
  return value;
}

const stela::detail::OpenObject& PersonalWriter::object(const char* type,
                                                        std::string_view field) const {
  const auto found =
      std::find_if(open_.rbegin(), open_.rend(), [&](const stela::detail::OpenObject& object) {
        return type == nullptr || object.type == type;
      });
  if (found == open_.rend()) {
    throw EncodeError{std::string{field} +
                      " is a personal field of a subject that no struct around it has"};
  }
  return *found;
}

void refuse_other_subject(std::string_view field, const Subject& of, const Subject& as) {
  throw EncodeError{std::string{field} + " is a value of " + of.name +
                    ", and would be sealed as one of " + as.name +
                    "; if that is meant, record it as `value.given_to()`"};
}

void refuse_without_keys(Sealing& sealing, std::string_view field) {
  sealing.lacked_keys = true;
  throw EncodeError{std::string{field} +
                    " is a personal field, and there are no keys to seal it with; open the store "
                    "with `.keys`"};
}

void refuse_unsealed() {
  throw UsageError{
      "a personal value that wasn't read from a store isn't sealed yet; bind what it shows "
      "(`value_or`), or the value of a recorded event"};
}

void refuse_nested(std::string_view field) {
  throw EncodeError{std::string{field} +
                    " is a personal field inside another; make the outer one a plain struct"};
}

void throw_not_readable() {
  throw CorruptEvent{"a personal field was opened, and isn't a value of its type"};
}

}  // namespace codec

namespace detail {

Subject subject_of_stream(const StreamId* stream) {
  if (stream == nullptr) {
    throw UsageError{
        "its subject is that of its stream, and it is written where there is no stream"};
  }
  return {stream->name(), {}};
}

}  // namespace detail
}  // namespace stela
