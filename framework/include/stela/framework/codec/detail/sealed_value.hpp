// Personal values in their stored form.
#pragma once

#include <stela/framework/codec/detail/sealing.hpp>
#include <stela/framework/export.hpp>
#include <stela/framework/keyring.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace stela::codec {

/// A personal value as it was stored. It doesn't change. Threads: any.
struct STELA_FRAMEWORK_EXPORT SealedValue {
  KeyId key_id = {};
  /// Null: there were no keys to open it with, or its own key was destroyed.
  std::shared_ptr<const SubjectKey> key = {};
  bool is_forgotten = false;
  bool is_json = true;
  /// nonce ‖ ciphertext ‖ tag; as base64url in JSON.
  std::string box = {};
  /// The place that it is bound to.
  std::string bound = {};

  /// The bytes of the value. Call only if there is a key. CorruptEvent if it was sealed for another
  /// place, or was changed.
  std::string open() const;
  /// The stored form as text, with the place that it is bound to, so that it opens wherever the
  /// text is kept. EncodeError if the place is unknown because the value was decoded apart from its
  /// event.
  std::string text() const;
};

/// True if the key that the value was read with has been destroyed since.
STELA_FRAMEWORK_EXPORT bool is_gone(const Sealing& sealing, const SealedValue& value);

/// The stored form of a personal field, as text or as bytes. SubjectForgotten if its subject was
/// forgotten, EncodeError if there are no keys.
STELA_FRAMEWORK_EXPORT std::string seal(Sealing& sealing, const Subject& subject,
                                        std::string_view field, std::string_view plain,
                                        bool as_text);
STELA_FRAMEWORK_EXPORT std::string forgotten_form(const KeyId& key, bool as_text);

/// Reads a stored form. DecodeError if it isn't one; KeyMissing.
STELA_FRAMEWORK_EXPORT std::shared_ptr<const SealedValue> read_sealed(const Opening* opening,
                                                                      std::string_view field,
                                                                      std::string_view stored,
                                                                      bool is_text);

/// A copy of a JSON payload in which each sealed field that can be opened is in clear text. The
/// rest is unchanged.
STELA_FRAMEWORK_EXPORT std::string reveal(std::string_view payload, const Opening& opening);

/// Reads a SealedValue's text. DecodeError if it isn't one; KeyMissing.
STELA_FRAMEWORK_EXPORT std::shared_ptr<const SealedValue> read_text(std::string_view text,
                                                                    Keyring* keys);
[[noreturn]] STELA_FRAMEWORK_EXPORT void refuse_unsealed();

/// EncodeError: a value of one subject would be sealed as another's.
[[noreturn]] STELA_FRAMEWORK_EXPORT void refuse_other_subject(std::string_view field,
                                                              const Subject& of, const Subject& as);
[[noreturn]] STELA_FRAMEWORK_EXPORT void refuse_without_keys(Sealing& sealing,
                                                             std::string_view field);
[[noreturn]] STELA_FRAMEWORK_EXPORT void refuse_nested(std::string_view field);
[[noreturn]] STELA_FRAMEWORK_EXPORT void throw_not_readable();

}  // namespace stela::codec
