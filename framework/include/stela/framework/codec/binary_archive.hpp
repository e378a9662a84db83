// cereal archives for cereal's portable binary, little-endian: byte for byte what
// cereal::PortableBinaryOutputArchive writes, into a string and out of a view, with every length
// checked before it is believed.
#pragma once

#include <stela/framework/codec/codec_error.hpp>

#include <cereal/cereal.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace stela::binary {

namespace detail {

template <std::size_t Size>
void reverse_if_big_endian(char* bytes, std::size_t count) {
  if constexpr (std::endian::native == std::endian::big && Size > 1) {
    for (std::size_t i = 0; i < count; ++i) std::reverse(bytes + i * Size, bytes + (i + 1) * Size);
  }
}

}  // namespace detail

class OutputArchive : public cereal::OutputArchive<OutputArchive, cereal::AllowEmptyClassElision> {
 public:
  /// Appends to `out`, which must outlive the archive.
  explicit OutputArchive(std::string& out)
      : cereal::OutputArchive<OutputArchive, cereal::AllowEmptyClassElision>{this}, out_{out} {
    out_ += '\1';  // cereal's mark for little-endian
  }

  template <std::size_t Size>
  void write(const void* data, std::size_t count) {
    const std::size_t begin = out_.size();
    out_.append(static_cast<const char*>(data), count * Size);
    detail::reverse_if_big_endian<Size>(out_.data() + begin, count);
  }

 private:
  std::string& out_;
};

class InputArchive : public cereal::InputArchive<InputArchive, cereal::AllowEmptyClassElision> {
 public:
  explicit InputArchive(std::string_view bytes)
      : cereal::InputArchive<InputArchive, cereal::AllowEmptyClassElision>{this}, rest_{bytes} {
    if (rest_.empty() || rest_.front() != '\1') {
      throw codec::DecodeError{"doesn't begin as portable binary does"};
    }
    rest_.remove_prefix(1);
  }

  template <std::size_t Size>
  void read(void* data, std::size_t count) {
    if (count > rest_.size() / Size) throw codec::DecodeError{"ends too early"};
    std::memcpy(data, rest_.data(), count * Size);
    detail::reverse_if_big_endian<Size>(static_cast<char*>(data), count);
    rest_.remove_prefix(count * Size);
  }

  /// Elements take at least a byte each, but for empty classes, of which few are plausible.
  void check_size(std::size_t count) const {
    if (count > std::max<std::size_t>(rest_.size(), 4096)) {
      throw codec::DecodeError{"announces " + std::to_string(count) + " elements, but has only " +
                               std::to_string(rest_.size()) + " bytes left"};
    }
  }

  void finish() const {
    if (!rest_.empty()) {
      throw codec::DecodeError{"has " + std::to_string(rest_.size()) + " bytes too many"};
    }
  }

 private:
  std::string_view rest_;
};

}  // namespace stela::binary

CEREAL_SETUP_ARCHIVE_TRAITS(stela::binary::InputArchive, stela::binary::OutputArchive)

namespace stela::binary {

template <class T>
requires std::is_arithmetic_v<T>
void save(OutputArchive& archive, const T& value) {
  static_assert(!std::is_same_v<T, long double>,
                "stela: an event can't hold a long double; its bytes differ between machines");
  archive.write<sizeof(T)>(&value, 1);
}
template <class T>
requires std::is_arithmetic_v<T>
void load(InputArchive& archive, T& value) {
  static_assert(!std::is_same_v<T, long double>,
                "stela: an event can't hold a long double; its bytes differ between machines");
  if constexpr (std::is_same_v<T, bool>) {
    std::uint8_t byte;
    archive.read<1>(&byte, 1);
    if (byte > 1) throw codec::DecodeError{"has a bool that is neither true nor false"};
    value = byte == 1;
  } else {
    archive.read<sizeof(T)>(&value, 1);
  }
}

template <class T>
void serialize(OutputArchive& archive, cereal::NameValuePair<T>& pair) {
  archive(pair.value);
}
template <class T>
void serialize(InputArchive& archive, cereal::NameValuePair<T>& pair) {
  archive(pair.value);
}

template <class T>
void serialize(OutputArchive& archive, cereal::SizeTag<T>& tag) {
  archive(tag.size);
}
template <class T>
void serialize(InputArchive& archive, cereal::SizeTag<T>& tag) {
  archive(tag.size);
  archive.check_size(static_cast<std::size_t>(tag.size));
}

template <class T>
void save(OutputArchive& archive, const cereal::BinaryData<T>& data) {
  using Element = std::remove_cv_t<std::remove_pointer_t<T>>;
  static_assert(!std::is_same_v<Element, long double>,
                "stela: an event can't hold a long double; its bytes differ between machines");
  archive.write<sizeof(Element)>(data.data, static_cast<std::size_t>(data.size) / sizeof(Element));
}
template <class T>
void load(InputArchive& archive, cereal::BinaryData<T>& data) {
  using Element = std::remove_cv_t<std::remove_pointer_t<T>>;
  static_assert(!std::is_same_v<Element, long double>,
                "stela: an event can't hold a long double; its bytes differ between machines");
  archive.read<sizeof(Element)>(data.data, static_cast<std::size_t>(data.size) / sizeof(Element));
}

}  // namespace stela::binary
