"""`flowstone.gfile`: files of any store by their paths."""

from flowstone.io.file_objects import FileIO as FastGFile
from flowstone.io.file_objects import FileIO as GFile
from flowstone.io.file_objects import FileIO as Open
from flowstone.io.file_system import copy as Copy
from flowstone.io.file_system import create_dir as MkDir
from flowstone.io.file_system import delete_file as Remove
from flowstone.io.file_system import delete_recursively as DeleteRecursively
from flowstone.io.file_system import file_exists as Exists
from flowstone.io.file_system import get_matching_files as Glob
from flowstone.io.file_system import is_directory as IsDirectory
from flowstone.io.file_system import list_directory as ListDirectory
from flowstone.io.file_system import recursive_create_dir as MakeDirs
from flowstone.io.file_system import rename as Rename
from flowstone.io.file_system import stat as Stat
from flowstone.io.file_system import walk as Walk
