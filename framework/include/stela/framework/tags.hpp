// Tags of events: ids by which events of several streams are found, and which decisions depend on.
#pragma once

#include <stela/framework/error.hpp>
#include <stela/framework/stream_id.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace stela {

/// A tag has the form of a stream's name, "<category>-<key>", and follows the same rules. An event
/// of the stream "course-c1" has the tag "course-c1" without declaring it.
using Tag = StreamId;

/// A category of tags that an event type declares.
struct TagDeclaration {
  std::string_view category;
  /// Every event of the type has one. Otherwise an event may lack it.
  bool always = true;
  /// An event may have several: more than one member declares the category, or a list does. Then
  /// the event's stream isn't its only tag of the category.
  bool several = false;

  friend bool operator==(const TagDeclaration&, const TagDeclaration&) = default;
};

namespace detail {

/// The category of a named tag, as a template argument.
template <std::size_t N>
struct TagName {
  // NOLINTNEXTLINE: written as a literal between < and >
  consteval TagName(const char (&literal)[N]) { std::copy_n(literal, N, text.begin()); }
  constexpr std::string_view view() const noexcept { return {text.data(), N - 1}; }

  std::array<char, N> text{};
};

/// The traits of a tag's value: its category, whether it is one, and its keys. A type that isn't a
/// tag has the same members, so that the only compile error is that of `check_tag`.
template <class V>
struct TagValue {
  static constexpr bool is_tag = false;
  static constexpr bool is_one = true;
  static constexpr bool may_be_several = false;
  using Named = void;
  static constexpr std::string_view category() noexcept { return "none"; }
  template <class F>
  static void for_each(const V&, F&&) {}
};

template <class A>
struct TagValue<Id<A>> {
  static constexpr bool is_tag = true;
  static constexpr bool is_one = true;
  static constexpr bool may_be_several = false;
  /// The type that the id names.
  using Named = A;
  static constexpr std::string_view category() noexcept { return A::category; }
  template <class F>
  static void for_each(const Id<A>& id, F&& f) {
    f(id.stream());
  }
};

template <class V>
requires TagValue<V>::is_tag struct TagValue<std::optional<V>> {
  static constexpr bool is_tag = true;
  static constexpr bool is_one = false;
  static constexpr bool may_be_several = TagValue<V>::may_be_several;
  using Named = typename TagValue<V>::Named;
  static constexpr std::string_view category() noexcept { return TagValue<V>::category(); }
  template <class F>
  static void for_each(const std::optional<V>& value, F&& f) {
    if (value) TagValue<V>::for_each(*value, f);
  }
};

template <class R>
using ElementOf = std::iter_value_t<decltype(std::begin(std::declval<const R&>()))>;

template <class R>
requires TagValue<ElementOf<R>>::is_tag struct TagValue<R> {
  using V = ElementOf<R>;
  static constexpr bool is_tag = true;
  static constexpr bool is_one = false;
  static constexpr bool may_be_several = true;
  using Named = typename TagValue<V>::Named;
  static constexpr std::string_view category() noexcept { return TagValue<V>::category(); }
  template <class F>
  static void for_each(const R& values, F&& f) {
    for (const V& value : values) TagValue<V>::for_each(value, f);
  }
};

/// A text or whole number under a name of its own: the value of a named tag.
template <TagName Name, class V>
struct NamedValue {
  V value;
};

template <class V>
concept PlainKey = std::convertible_to<const V&, std::string_view> ||
    (std::integral<V> && !std::same_as<V, bool>);

template <TagName Name, class V>
requires PlainKey<V>
struct TagValue<NamedValue<Name, V>> {
  static constexpr bool is_tag = true;
  static constexpr bool is_one = true;
  static constexpr bool may_be_several = false;
  using Named = void;
  static constexpr std::string_view category() noexcept { return Name.view(); }
  template <class F>
  static void for_each(const NamedValue<Name, V>& named, F&& f) {
    if constexpr (std::integral<V>) {
      f(StreamId::of(category(), std::to_string(named.value)));
    } else {
      f(StreamId::of(category(), named.value));
    }
  }
};

/// Makes a member that isn't an id a tag.
template <TagName Name, class Member>
struct NamedMember {
  Member member;

  template <class T>
  auto operator()(const T& object) const {
    using V = std::remove_cvref_t<std::invoke_result_t<const Member&, const T&>>;
    return NamedValue<Name, V>{std::invoke(member, object)};
  }
};

/// The members of a struct that are its tags.
template <class... Members>
struct TagList {
  std::tuple<Members...> members;
};

}  // namespace detail

/// The tags of an event or a view: `static constexpr auto tags = stela::tags(&Subscribed::course,
/// &Subscribed::student);`. A member is an `Id`, an optional one, a list of them, or a function
/// that returns one of these; other values get a name by `stela::tag`. The first tag of an event
/// names the stream to which a decision records it; its category never changes.
template <class... Members>
constexpr detail::TagList<Members...> tags(Members... members) noexcept {
  return {std::tuple{members...}};
}

/// A text or a whole number as a tag: `stela::tag<"email">(&UserRegistered::email)` is
/// "email-jane@example.org". Its value must be valid as the key of a stream. Tags are stored as
/// they are, for ever: don't tag with personal data or a hash of it.
template <detail::TagName Name, class Member>
constexpr detail::NamedMember<Name, Member> tag(Member member) noexcept {
  static_assert(is_valid_category(Name.view()),
                "stela: the name of a tag is 1 to 64 characters of a-z, 0-9 and '_', the first a "
                "letter");
  return {member};
}

namespace detail {

/// An event or a view that declares tags.
template <class T>
concept Tagged = requires {
  T::tags.members;
};

/// Stands for the value of a member that the struct doesn't have.
struct MemberOfAnother {};

template <class T, class Member>
struct TagValueIn {
  using Type = MemberOfAnother;
};
template <class T, class Member>
requires std::invocable<const Member&, const T&>
struct TagValueIn<T, Member> {
  using Type = std::remove_cvref_t<std::invoke_result_t<const Member&, const T&>>;
};
template <class T, class Member>
using TagValueOf = TagValue<typename TagValueIn<T, Member>::Type>;

template <class T, class Member, class F>
void visit_tag(const T& object, const Member& member, F& f) {
  if constexpr (std::invocable<const Member&, const T&>) {
    TagValueOf<T, Member>::for_each(std::invoke(member, object), f);
  }
}

template <class T, class Member>
consteval bool check_tag() {
  static_assert(std::invocable<const Member&, const T&>,
                "stela: a tag is a member of the struct that declares it");
  if constexpr (std::invocable<const Member&, const T&>) {
    static_assert(TagValueOf<T, Member>::is_tag,
                  "stela: a tag is an Id, an optional one, or a list of them; give another value a "
                  "name: stela::tag<\"email\">(&UserRegistered::email)");
  }
  return true;
}

/// Checks the tags of an event or a view, each with our own error message.
template <class T>
consteval bool check_tags() {
  if constexpr (Tagged<T>) {
    []<class... Members>(const TagList<Members...>&) {
      static_assert(sizeof...(Members) > 0,
                    "stela: stela::tags() needs at least one tag; leave `tags` out if there is "
                    "none");
      static_assert((... && check_tag<T, Members>()));
    }(T::tags);
  }
  return true;
}

/// Calls `f(tag)` for each tag of `object`. UsageError if a value can't be a tag.
template <Tagged T, class F>
void for_each_tag(const T& object, F&& f) {
  std::apply(
      [&]<class... Members>(const Members&... members) { (visit_tag(object, members, f), ...); },
      T::tags.members);
}

/// The categories that `T` declares, each once.
template <class T>
constexpr auto declare_tags() {
  if constexpr (Tagged<T>) {
    return []<class... Members>(const TagList<Members...>&) {
      struct List {
        std::array<TagDeclaration, sizeof...(Members)> all{};
        std::size_t size = 0;
      } list;
      const auto add = [&](const TagDeclaration& one) {
        for (std::size_t i = 0; i < list.size; ++i) {
          if (list.all[i].category != one.category) continue;
          list.all[i].always = list.all[i].always || one.always;
          list.all[i].several = true;
          return;
        }
        list.all[list.size++] = one;
      };
      (add({TagValueOf<T, Members>::category(), TagValueOf<T, Members>::is_one,
            TagValueOf<T, Members>::may_be_several}),
       ...);
      return list;
    }(T::tags);
  } else {
    struct None {
      std::array<TagDeclaration, 0> all{};
      std::size_t size = 0;
    };
    return None{};
  }
}

template <class T>
inline constexpr auto declared_tags = declare_tags<T>();

template <class T>
constexpr bool declares_tag(std::string_view category) noexcept {
  const auto& list = declared_tags<T>;
  for (std::size_t i = 0; i < list.size; ++i) {
    if (list.all[i].category == category) return true;
  }
  return false;
}

/// True if their tags have the same categories, in the same order.
template <class T, class Other>
constexpr bool declare_same_tags() noexcept {
  const auto& one = declared_tags<T>;
  const auto& other = declared_tags<Other>;
  if (one.size != other.size) return false;
  for (std::size_t i = 0; i < one.size; ++i) {
    if (one.all[i].category != other.all[i].category) return false;
  }
  return true;
}

/// The member that is the first tag of `T`.
template <Tagged T>
using FirstTag = std::remove_cvref_t<decltype(std::get<0>(T::tags.members))>;

/// The stream to which a decision records `event`.
template <Tagged T>
Tag first_tag(const T& event) {
  std::optional<Tag> first;
  const auto keep = [&](Tag tag) { first.emplace(std::move(tag)); };
  visit_tag(event, std::get<0>(T::tags.members), keep);
  return *std::move(first);
}

}  // namespace detail
}  // namespace stela
