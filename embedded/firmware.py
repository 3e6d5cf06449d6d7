"""Names that MicroPython has in its firmware, so that using them takes no memory.

They come from py/ and extmod/ of MicroPython 1.28, as ports with a network are configured: modules
such as math, uctypes, framebuf, errno and asyncio, and methods of the built-in types. If a port
lacks one, nothing fails: the name takes memory there like any other.

Left out are names that MicroPython looks up in objects or that its compiler treats specially
(`send`, `keys`, `const` and so on), built-ins, and the names of ports and boards.
"""

from __future__ import annotations

NAMES: list[str] = """
ARRAY AUTO BFINT16 BFINT32 BFINT8 BFUINT16 BFUINT32 BFUINT8 BF_LEN BF_POS BIG_ENDIAN BytesIO
DeflateIO EACCES EAGAIN EALREADY EBADF ECONNABORTED ECONNREFUSED ECONNRESET EEXIST EHOSTUNREACH
EINPROGRESS EINVAL EIO EISDIR ENOBUFS ENODEV ENOENT ENOMEM ENOTCONN EOPNOTSUPP EPERM ETIMEDOUT
FLOAT32 FLOAT64 FrameBuffer FrameBuffer1 GS2_HMSB GS4_HMSB GS8 GZIP INT INT16 INT32 INT64 INT8
IOBase LITTLE_ENDIAN LONG LONGLONG Lock MONO_HLSB MONO_HMSB MONO_VLSB MVLSB NATIVE NoneType
OrderedDict POLLERR POLLHUP POLLIN POLLOUT PTR RAW RGB565 RingIO SHORT SingletonGenerator StringIO
Task TaskQueue ThreadSafeFlag UINT UINT16 UINT32 UINT64 UINT8 ULONG ULONGLONG USHORT VOID ZLIB
_exc_context _io_queue _promote_to_task _task_queue a2b_base64 abs_tol acos acosh acquire add
addressof append appendleft array asin asinh atan atan2 atanh b2a_base64 binascii blit bound_method
buf buffering builtins bytearray_at byteorder bytes_at calcsize call_exception_handler ceil center
chdir choice clear closure cmath code collect collections copy copysign cos cosh count crc32
cur_task decode default_exception_handler deflate degrees deque dict_view difference
difference_update digest disable discard dt dump dumps ellipse enable encode encoding endswith er
erf erfc errorcode exc exc_type exp expm1 extend fabs factorial fill fill_rect find flags floor
fmod framebuf frexp from_bytes fromhex fromkeys funcs function gamma gather gc generator get
get_event_loop get_exception_handler getcwd getrandbits getvalue gmtime group handler hashlib
heap_lock heap_unlock heapify heappop heappush heapq hexlify hline ilistdir imag implementation
index indices inf insert intersection intersection_update io ipoll is_set isalpha isclose isdigit
isdisjoint isenabled isfinite isinf islower isnan issubset issuperset isupper iterable iterator
join json keepends ldexp lgamma line listdir little load loads localtime locked log log10 log2
lower lstrip match math maxsize mem_alloc mem_free mem_info mkdir mkfs mktime mode modf modify
module modules mount mtime namedtuple nan new_event_loop newline os pack pack_into partition path
phase pi pixel platform polar poll poly popitem popleft print_exception ps1 ps2 qstr_info
queue_read radians randint random randrange re readblocks readonly real rect register rel_tol
rename replace req return_exceptions reverse rfind rindex rmdir rpartition rsplit rstrip schedule
scroll search seed select separators set_exception_handler setdefault sgen sha256 sin single sinh
sizeof sleep sleep_ms sleep_us sort split splitlines sqrt stack_use start startswith stat statvfs
stderr stdin stdout step stop strip struct sub symmetric_difference symmetric_difference_update
sync sys sz tan tanh tau tb text threshold ticks ticks_add ticks_cpu ticks_diff ticks_ms ticks_us
time time_ns to_bytes trunc uctypes umount unhexlify uniform union unlink unpack unpack_from
unregister update upper values version version_info vfs vline wait_for wait_for_ms waiter waiting
writeblocks
""".split()  # noqa: SIM905 - a list of 350 lines is not easier to read
