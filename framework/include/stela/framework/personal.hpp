// Personal data as a field of events, states and timers.
#pragma once

#include <stela/framework/codec/codec.hpp>
#include <stela/framework/codec/detail/sealed_value.hpp>
#include <stela/framework/codec/detail/subject.hpp>
#include <stela/framework/error.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace stela {
namespace detail {

struct PersonalAccess;

/// The class that a pointer to a member points into.
template <class T>
struct ClassOfMember;
template <class Class, class Member>
struct ClassOfMember<Member Class::*> {
  using Type = Class;
};

}  // namespace detail

/// A value that its subject may have erased. It is stored sealed, with a key of its subject: the
/// one that the enclosing struct declares as its `subject`, or the `Id` named here:
/// `Personal<std::string, &GiftSent::from>`. Once the subject is forgotten, no reader can open it.
/// Values that were read before stay open while they are held in memory.
///
/// `value_or` and `if_open` are the only ways to the value: it may be gone, and an aggregate must
/// still load. It isn't compared, hashed or printed. A value that was read knows whose it is, and
/// can be recorded as another person's only with `given_to`. Threads: as those of T.
template <class T, auto Whose>
class Personal {
 public:
  Personal() = default;
  // NOLINTNEXTLINE: a field is given its value as any other.
  Personal(T value) : value_{std::move(value)} {}
  template <class Text>
  requires(!std::is_same_v<std::remove_cvref_t<Text>, T> &&
           std::is_constructible_v<T, const Text&> && std::is_convertible_v<const Text&, T>)
      // NOLINTNEXTLINE: from a literal, too.
      Personal(const Text& value)
      : value_{T(value)} {}
  /// The value of another field: of the same person, or made this person's by `given_to`.
  template <auto Other>
  requires(!std::is_same_v<Personal<T, Other>, Personal>)
      // NOLINTNEXTLINE: between fields.
      Personal(Personal<T, Other> other)
      : value_{std::move(other.value_)} {}

  /// The value, or `otherwise` if it was forgotten or there are no keys to open it with.
  /// CorruptEvent if its bytes were forged.
  T value_or(T otherwise) const {
    if_open([&](T value) { otherwise = std::move(value); });
    return otherwise;
  }
  /// Calls `f(value)` if the value is open, and returns whether it was.
  template <class F>
  bool if_open(F&& f) const {
    if (const T* const own = std::get_if<T>(&value_)) {
      std::forward<F>(f)(*own);
      return true;
    }
    const codec::SealedValue& sealed = *std::get<Sealed>(value_);
    if (sealed.key == nullptr) return false;
    std::forward<F>(f)(opened(sealed));
    return true;
  }

  bool is_forgotten() const noexcept {
    const Sealed* const sealed = std::get_if<Sealed>(&value_);
    return sealed != nullptr && (*sealed)->is_forgotten;
  }
  /// True if there are no keys to open it with.
  bool is_sealed() const noexcept {
    const Sealed* const sealed = std::get_if<Sealed>(&value_);
    return sealed != nullptr && (*sealed)->key == nullptr && !(*sealed)->is_forgotten;
  }

  /// The value, to be recorded on purpose as another person's. A value that can't be opened is
  /// returned unchanged.
  Personal given_to() const {
    Personal given = *this;
    if_open([&](T value) { given.value_ = std::move(value); });
    return given;
  }

 private:
  template <class, auto>
  friend class Personal;
  friend struct detail::PersonalAccess;

  using Sealed = std::shared_ptr<const codec::SealedValue>;

  static T opened(const codec::SealedValue& sealed) {
    try {
      return codec::decode<T>(sealed.is_json ? Codec::json : Codec::portable_binary, sealed.open());
    } catch (const codec::DecodeError&) {
      codec::throw_not_readable();  // the error's text may quote the value
    }
  }

  std::variant<T, Sealed> value_;
};

namespace detail {

/// For archives.
struct PersonalAccess {
  /// The subject under which the field will be stored.
  template <auto Whose>
  static Subject subject(codec::PersonalWriter& writer, std::string_view field) {
    const StreamId* const stream = writer.sealing().stream;
    using Member = std::remove_const_t<decltype(Whose)>;
    if constexpr (std::is_member_object_pointer_v<Member>) {
      using Class = typename ClassOfMember<Member>::Type;
      const OpenObject& object = writer.object(&type_mark<Class>, field);
      return subject_in(*static_cast<const Class*>(object.object), Whose, stream);
    } else {
      const OpenObject& object = writer.object(nullptr, field);
      return object.subject(object.object, stream);
    }
  }

  template <class T, auto Whose>
  static std::string sealed_form(codec::PersonalWriter& writer, const Personal<T, Whose>& value,
                                 std::string_view field, Codec codec) {
    using Show = codec::Sealing::Show;
    if (writer.show() == Show::masked) return "(personal)";
    if (writer.show() == Show::refused) codec::refuse_nested(field);
    const bool as_text = codec == Codec::json;
    using Sealed = typename Personal<T, Whose>::Sealed;
    const Sealed* const read = std::get_if<Sealed>(&value.value_);
    if (read != nullptr && codec::is_gone(writer.sealing(), **read)) {
      return codec::forgotten_form((*read)->key_id, as_text);
    }
    if (read != nullptr && (*read)->key == nullptr) {
      codec::refuse_without_keys(writer.sealing(), field);
    }
    const Subject subject = PersonalAccess::subject<Whose>(writer, field);
    if (read != nullptr && (*read)->key->subject.name != subject.name) {
      codec::refuse_other_subject(field, (*read)->key->subject, subject);
    }
    std::string plain;
    if (read != nullptr && (*read)->is_json == as_text) {
      plain = (*read)->open();
    } else {
      codec::Sealing inside{.show = Show::refused};
      value.if_open([&](const T& open) { codec::encode(codec, open, plain, &inside); });
    }
    std::string sealed = codec::seal(writer.sealing(), subject, field, plain, as_text);
    // The subject was forgotten meanwhile and allowed again, so the key is a new one.
    if (read != nullptr && codec::is_gone(writer.sealing(), **read)) {
      return codec::forgotten_form((*read)->key_id, as_text);
    }
    return sealed;
  }

  /// The test kit's word for a value that can't be opened.
  template <class T, auto Whose>
  static const char* word(const Personal<T, Whose>& value) noexcept {
    return value.is_forgotten() ? "(forgotten)" : "(sealed)";
  }

  template <class T, auto Whose>
  static T& clear(Personal<T, Whose>& value) {
    return value.value_.template emplace<T>();
  }
  template <class T, auto Whose>
  static void set(Personal<T, Whose>& value, std::shared_ptr<const codec::SealedValue> sealed) {
    value.value_ = std::move(sealed);
  }
  template <class T, auto Whose>
  static const std::shared_ptr<const codec::SealedValue>* sealed(
      const Personal<T, Whose>& value) noexcept {
    using Sealed = typename Personal<T, Whose>::Sealed;
    return std::get_if<Sealed>(&value.value_);
  }
};

}  // namespace detail

/// The value's sealed form as a text that can be kept anywhere, for example in a read model, and
/// read again by `read_sealed_text`. It is forgotten with its subject. UsageError if the value
/// wasn't read from a store.
template <class T, auto Whose>
std::string sealed_text(const Personal<T, Whose>& value) {
  const auto* const sealed = detail::PersonalAccess::sealed(value);
  if (sealed == nullptr) codec::refuse_unsealed();
  return (*sealed)->text();
}

/// The value of a `sealed_text`. UsageError if the text isn't one; KeyMissing.
template <class T>
Personal<T> read_sealed_text(std::string_view text, Keyring* keys) {
  Personal<T> value;
  try {
    detail::PersonalAccess::set(value, codec::read_text(text, keys));
  } catch (const codec::DecodeError& e) {
    throw UsageError{e.what()};
  }
  return value;
}

template <class T, auto Whose>
void save(json::OutputArchive& archive, const Personal<T, Whose>& value) {
  if (archive.personal().show() == codec::Sealing::Show::clear) {
    if (value.if_open([&](const T& open) { archive(open); })) return;
    archive(std::string{detail::PersonalAccess::word(value)});
    return;
  }
  archive.begin_value();
  json::append_string(archive.out(), detail::PersonalAccess::sealed_form(
                                         archive.personal(), value, archive.path(), Codec::json));
}
template <class T, auto Whose>
void load(json::InputArchive& archive, Personal<T, Whose>& value) {
  if (archive.personal().is_clear()) {
    archive(detail::PersonalAccess::clear(value));
    return;
  }
  archive.begin_value();
  const std::string stored{archive.reader().get_string()};
  detail::PersonalAccess::set(
      value, codec::read_sealed(archive.personal().opening(), archive.path(), stored, true));
}

template <class T, auto Whose>
void save(binary::OutputArchive& archive, const Personal<T, Whose>& value) {
  if (archive.personal().show() == codec::Sealing::Show::clear) {
    if (value.if_open([&](const T& open) { archive(open); })) return;
    archive(std::string{detail::PersonalAccess::word(value)});
    return;
  }
  archive(detail::PersonalAccess::sealed_form(
      archive.personal(), value, archive.personal().next_number(), Codec::portable_binary));
}
template <class T, auto Whose>
void load(binary::InputArchive& archive, Personal<T, Whose>& value) {
  if (archive.personal().is_clear()) {
    archive(detail::PersonalAccess::clear(value));
    return;
  }
  std::string stored;
  archive(stored);
  const std::string field = archive.personal().next_number();
  detail::PersonalAccess::set(
      value, codec::read_sealed(archive.personal().opening(), field, stored, false));
}

}  // namespace stela
