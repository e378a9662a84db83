// Declares whose personal data a struct holds.
#pragma once

#include <stela/framework/key_id.hpp>
#include <stela/framework/stream_id.hpp>

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

namespace stela {

/// `static constexpr auto subject = stela::stream_is_subject;`: the personal fields belong to the
/// person whom the stream is about. For a timer, that is the stream named by the key of its process
/// instance.
struct StreamIsSubject {};
inline constexpr StreamIsSubject stream_is_subject{};

namespace detail {

template <class Whose>
struct SubjectForPurpose {
  Whose whose;
  std::string_view purpose;
};

template <class T>
inline constexpr bool declares_subject =
    std::is_same_v<T, StreamIsSubject> || std::is_member_object_pointer_v<T>;
template <class Whose>
inline constexpr bool declares_subject<SubjectForPurpose<Whose>> = declares_subject<Whose>;

/// A struct whose personal fields have a subject.
template <class T>
concept HasSubject = std::is_class_v<T> && requires {
  requires declares_subject<std::remove_cvref_t<decltype(T::subject)>>;
};

}  // namespace detail

/// `static constexpr auto subject = stela::personal(&InvoiceSent::guest, "invoices");`: the fields
/// have a key of their own for this purpose, which can be kept while others are forgotten.
template <class Whose>
constexpr detail::SubjectForPurpose<Whose> personal(Whose whose, std::string_view purpose) {
  static_assert(detail::declares_subject<Whose>,
                "stela: the subject is a member of the struct, or stela::stream_is_subject");
  return {whose, purpose};
}

namespace detail {

/// EncodeError or UsageError if it names nobody. The payload belongs to `stream`.
STELA_FRAMEWORK_EXPORT Subject subject_of_stream(const StreamId* stream);

template <class T, class Class, class Member>
Subject subject_in(const T& object, Member Class::*member, const StreamId*) {
  static_assert(std::derived_from<T, Class> && std::convertible_to<const Member&, StreamId>,
                "stela: a subject is a member of type stela::Id");
  return {StreamId{object.*member}.name(), {}};
}
template <class T>
Subject subject_in(const T&, StreamIsSubject, const StreamId* stream) {
  return subject_of_stream(stream);
}
template <class T, class Whose>
Subject subject_in(const T& object, const SubjectForPurpose<Whose>& whose, const StreamId* stream) {
  Subject subject = subject_in(object, whose.whose, stream);
  subject.purpose = whose.purpose;
  return subject;
}

template <class T>
inline constexpr char type_mark = 0;

/// An object that is being written, with the subject that its class declares.
struct OpenObject {
  const void* object;
  /// `&type_mark<T>`.
  const char* type;
  Subject (*subject)(const void* object, const StreamId* stream);

  template <HasSubject T>
  static OpenObject of(const T& object) noexcept {
    return {&object, &type_mark<T>, [](const void* self, const StreamId* stream) {
              return subject_in(*static_cast<const T*>(self), T::subject, stream);
            }};
  }
};

}  // namespace detail
}  // namespace stela
