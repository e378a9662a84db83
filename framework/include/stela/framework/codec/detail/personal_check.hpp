// Checks that a struct with personal fields declares whose they are.
#pragma once

#include <stela/framework/codec/detail/shapes.hpp>
#include <stela/framework/codec/detail/subject.hpp>

#include <cereal/cereal.hpp>

#include <cstdint>
#include <type_traits>

namespace stela::detail {

/// An archive that only the compiler sees: it visits the fields of a struct without a subject, and
/// refuses personal ones.
struct PersonalCheck {
  using is_saving = std::true_type;
  using is_loading = std::false_type;

  template <class... Ts>
  PersonalCheck& operator()(Ts&&... fields) {
    (visit(fields), ...);
    return *this;
  }
  template <class T>
  PersonalCheck& operator&(T&& field) {
    visit(field);
    return *this;
  }
  template <class T>
  PersonalCheck& operator<<(T&& field) {
    visit(field);
    return *this;
  }

  template <class T>
  void visit(const T& field) {
    if constexpr (std::is_class_v<T>) visit_class(field);
  }

 private:
  /// An element of any type. Never called.
  template <class T>
  static const T& as(const void* place) {
    return *static_cast<const T*>(place);
  }
  template <class T>
  void visit(const cereal::NameValuePair<T>& pair) {
    visit(pair.value);
  }
  template <class T>
  void visit_class(const T& field) {
    static_assert(!codec::is_personal<T>,
                  "stela: a struct with a personal field says whose it is: `static constexpr auto "
                  "subject = &E::guest;` with a member of type stela::Id, or "
                  "stela::stream_is_subject; the lines around this one name the struct");
    T& object = const_cast<T&>(field);
    if constexpr (requires { typename T::mapped_type; }) {
      visit(as<typename T::mapped_type>(&field));
    } else if constexpr (requires { typename T::value_type; }) {
      visit(as<typename T::value_type>(&field));
    } else if constexpr (requires { field.base_ptr; }) {
      visit(*field.base_ptr);
    } else if constexpr (requires { cereal::access::member_serialize(*this, object); }) {
      cereal::access::member_serialize(*this, object);
    } else if constexpr (requires {
                           cereal::access::member_serialize(*this, object, std::uint32_t{});
                         }) {
      cereal::access::member_serialize(*this, object, std::uint32_t{});
    } else if constexpr (requires { cereal::access::member_save(*this, field); }) {
      cereal::access::member_save(*this, field);
    }
  }
};

/// Compiles, but never runs, the code that visits the fields of `E`.
template <class E>
void visit_fields(const E& value) {
  PersonalCheck check;
  check.visit(value);
}

template <auto>
struct Compiled {};

/// Compiles only if each personal field of `E` has a subject. (Fields that free functions write
/// aren't seen here; writing them fails at run time.)
template <class E>
consteval bool check_personal() {
  if constexpr (HasSubject<E> || std::is_empty_v<E>) {
    return true;
  } else {
    (void)Compiled<&visit_fields<E>>{};
    return true;
  }
}

}  // namespace stela::detail
