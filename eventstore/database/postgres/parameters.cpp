#include "database/postgres/parameters.hpp"

#include <stela/framework/error.hpp>

#include <bit>
#include <cstring>

namespace stela::postgres {
namespace {

template <class Integer>
void put(std::string& out, Integer value) {
  for (int shift = static_cast<int>(sizeof value) * 8 - 8; shift >= 0; shift -= 8) {
    out += static_cast<char>(static_cast<std::uint64_t>(value) >> shift & 0xff);
  }
}

std::string_view bytes_of(const Uuid& id) noexcept {
  return {reinterpret_cast<const char*>(id.bytes().data()), id.bytes().size()};
}

}  // namespace

Array::Array(Oid type, Oid element) : type_{type} {
  put(bytes_, std::int32_t{1});
  put(bytes_, std::int32_t{0});
  put(bytes_, static_cast<std::int32_t>(element));
  put(bytes_, std::int32_t{0});
  put(bytes_, std::int32_t{1});
}

void Array::add(std::int64_t value) {
  put(bytes_, std::int32_t{8});
  put(bytes_, value);
  ++count_;
}

void Array::add_int4(std::int64_t value) {
  put(bytes_, std::int32_t{4});
  put(bytes_, static_cast<std::int32_t>(value));
  ++count_;
}

void Array::add_bool(bool value) {
  put(bytes_, std::int32_t{1});
  bytes_ += value ? '\1' : '\0';
  ++count_;
}

void Array::add_bytes(std::string_view bytes) {
  put(bytes_, static_cast<std::int32_t>(bytes.size()));
  bytes_ += bytes;
  ++count_;
}

void check_size(std::size_t bytes) {
  // The limit of a message, minus the overhead around the values in it.
  constexpr std::size_t most = std::size_t{1023} * 1024 * 1024;
  if (bytes <= most) return;
  throw UsageError{"it has " + std::to_string(bytes) +
                   " bytes, and PostgreSQL takes at most 1023 MiB in one piece; append less at "
                   "once"};
}

void Array::add_uuid(const Uuid& id) {
  add_bytes(bytes_of(id));
}

void Array::add_null() {
  put(bytes_, std::int32_t{-1});
  has_null_ = true;
  ++count_;
}

std::string_view Array::encoded() {
  std::string header;
  // An array without elements has no dimension.
  put(header, std::int32_t{count_ > 0 ? 1 : 0});
  put(header, std::int32_t{has_null_ ? 1 : 0});
  bytes_.replace(0, header.size(), header);
  std::string count;
  put(count, count_);
  bytes_.replace(12, count.size(), count);
  return count_ > 0 ? std::string_view{bytes_} : std::string_view{bytes_}.substr(0, 12);
}

Parameters& Parameters::add(std::int64_t value) {
  std::string bytes;
  put(bytes, value);
  return keep(type::int8, bytes);
}

Parameters& Parameters::add_real(double value) {
  std::string bytes;
  put(bytes, std::bit_cast<std::int64_t>(value));
  return keep(type::float8, bytes);
}

Parameters& Parameters::add_uuid(const Uuid& id) {
  return keep(type::uuid, bytes_of(id));
}

Parameters& Parameters::add_null(Oid of) {
  add(of, {}, true);
  values_.back() = nullptr;
  return *this;
}

Parameters& Parameters::add_untyped(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    throw UsageError{"PostgreSQL stores no text with a zero byte in it; pass it as bytes"};
  }
  keep(type::unknown, text);
  own_ += '\0';
  formats_.back() = 0;
  return *this;
}

Parameters& Parameters::add(Oid of, std::string_view bytes, bool is_binary) {
  std::size_t size = bytes.size();
  for (const int length : lengths_) size += static_cast<std::size_t>(length);
  check_size(size);
  types_.push_back(of);
  // An empty view may have a null address, which would mean NULL.
  values_.push_back(bytes.empty() ? "" : bytes.data());
  offsets_.push_back(is_referred);
  lengths_.push_back(static_cast<int>(bytes.size()));
  formats_.push_back(is_binary ? 1 : 0);
  return *this;
}

Parameters& Parameters::keep(Oid of, std::string_view bytes) {
  add(of, bytes, true);
  offsets_.back() = own_.size();
  own_ += bytes;
  return *this;
}

std::span<const char* const> Parameters::values() {
  for (std::size_t at = 0; at < values_.size(); ++at) {
    if (offsets_[at] != is_referred) values_[at] = own_.data() + offsets_[at];
  }
  return values_;
}

std::int64_t to_integer(std::string_view bytes) noexcept {
  std::uint64_t value = !bytes.empty() && (bytes.front() & 0x80) != 0 ? ~std::uint64_t{0} : 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return static_cast<std::int64_t>(value);
}

Uuid to_uuid(std::string_view bytes) noexcept {
  Uuid::Bytes raw{};
  if (bytes.size() == raw.size()) std::memcpy(raw.data(), bytes.data(), raw.size());
  return Uuid{raw};
}

}  // namespace stela::postgres
