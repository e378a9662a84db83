#include "support/rich_event.hpp"

namespace stela::codec {

template void encode<test::RichEvent>(Codec, const test::RichEvent&, std::string&, Sealing*);
template void decode<test::RichEvent>(Codec, std::string_view, test::RichEvent&, const Opening*);

}  // namespace stela::codec
